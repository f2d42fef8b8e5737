create table cells (
  id bigint not null,
  name text collate "C" not null,
  url text collate "C" not null,
  added_at_ms bigint not null,
  draining smallint not null
);
CREATE UNIQUE INDEX cells_pkey ON cells USING btree (id); -- primary key
CREATE UNIQUE INDEX cells_name_key ON cells USING btree (name);

create table contents (
  key bigint not null,
  project_id bigint not null,
  id text collate "C" not null,
  url text collate "C" not null,
  origin text collate "C" not null,
  path text collate "C" not null,
  method text collate "C" not null,
  header text collate "C",
  created_at_ms bigint not null,
  not_before_ms bigint not null,
  caller_ip text collate "C",
  topic_name text collate "C",
  queue_name text collate "C",
  schedule_id text collate "C",
  flow_control_key text collate "C",
  labels text collate "C",
  replay_of bigint,
  settings text collate "C" not null,
  body bytea
) with (
  autovacuum_vacuum_scale_factor=0.03,
  autovacuum_vacuum_threshold=1000,
  toast.autovacuum_vacuum_scale_factor=0.03
);
CREATE UNIQUE INDEX contents_pkey ON contents USING btree (key); -- primary key
CREATE INDEX contents_replays ON contents USING btree (replay_of, key) WHERE (replay_of IS NOT NULL);

create table dead (
  project_id bigint not null,
  failed_at_ms bigint not null,
  key bigint not null,
  run_key bigint,
  retried bigint not null,
  response_status bigint not null,
  response_header text collate "C",
  response_body bytea
) with (
  autovacuum_vacuum_scale_factor=0.03,
  autovacuum_vacuum_threshold=1000,
  toast.autovacuum_vacuum_scale_factor=0.03
);
CREATE UNIQUE INDEX dead_pkey ON dead USING btree (project_id, failed_at_ms, key); -- primary key
CREATE INDEX dead_key ON dead USING btree (key);
CREATE INDEX dead_runs ON dead USING btree (project_id, failed_at_ms, key) WHERE (run_key IS NOT NULL);

create table deduplications (
  project_id bigint not null,
  hash text collate "C" not null,
  message_id text collate "C" not null,
  expires_at_ms bigint not null
) with (
  autovacuum_vacuum_scale_factor=0.03,
  autovacuum_vacuum_threshold=1000,
  toast.autovacuum_vacuum_scale_factor=0.03
);
CREATE UNIQUE INDEX deduplications_pkey ON deduplications USING btree (project_id, hash); -- primary key
CREATE INDEX deduplications_expiry ON deduplications USING btree (expires_at_ms);

create table ending_runs (
  key bigint not null,
  project_id bigint not null,
  cancel_at_ms bigint not null
) with (
  autovacuum_vacuum_scale_factor=0.03,
  autovacuum_vacuum_threshold=1000
);
CREATE UNIQUE INDEX ending_runs_pkey ON ending_runs USING btree (key); -- primary key

create table flow_keys (
  project_id bigint not null,
  key text collate "C" not null,
  parallelism bigint,
  rate bigint,
  period_s bigint not null,
  parallelism_pinned smallint not null,
  rate_pinned smallint not null,
  paused smallint not null,
  window_started_at_ms bigint,
  window_count bigint not null,
  used_at_ms bigint not null,
  wake_at_ms bigint
) with (
  fillfactor=70,
  autovacuum_vacuum_scale_factor=0.01,
  autovacuum_vacuum_threshold=500,
  autovacuum_vacuum_cost_delay=0,
  autovacuum_analyze_scale_factor=0.02,
  vacuum_index_cleanup=on
);
CREATE UNIQUE INDEX flow_keys_pkey ON flow_keys USING btree (project_id, key); -- primary key
CREATE INDEX flow_keys_used ON flow_keys USING btree (used_at_ms);
CREATE INDEX flow_keys_wake ON flow_keys USING btree (wake_at_ms, project_id, key) WHERE (wake_at_ms IS NOT NULL);

create table invocations (
  run_key bigint not null,
  key bigint not null,
  parent_key bigint not null
) with (
  autovacuum_vacuum_scale_factor=0.03,
  autovacuum_vacuum_threshold=1000
);
CREATE UNIQUE INDEX invocations_pkey ON invocations USING btree (run_key, key); -- primary key

create table journal (
  run_key bigint not null,
  position bigint not null,
  kind smallint not null,
  key bigint not null,
  entry_key text collate "C" not null,
  at_ms bigint not null
) with (
  autovacuum_vacuum_scale_factor=0.03,
  autovacuum_vacuum_threshold=1000,
  toast.autovacuum_vacuum_scale_factor=0.03
);
CREATE UNIQUE INDEX journal_pkey ON journal USING btree (run_key, "position"); -- primary key
CREATE UNIQUE INDEX journal_entry_key ON journal USING btree (run_key, entry_key);
CREATE INDEX journal_key ON journal USING btree (key);

create table log_details (
  seq bigint not null,
  at_ms bigint not null,
  error text collate "C",
  next_delivery_at_ms bigint,
  response_status bigint,
  response_header text collate "C",
  response_body bytea
) partition by range (at_ms);
CREATE UNIQUE INDEX log_details_pkey ON ONLY log_details USING btree (seq, at_ms); -- primary key

-- partition of log_details: default
create table log_details_default (
  seq bigint not null,
  at_ms bigint not null,
  error text collate "C",
  next_delivery_at_ms bigint,
  response_status bigint,
  response_header text collate "C",
  response_body bytea
) with (
  autovacuum_vacuum_scale_factor=0.03,
  autovacuum_vacuum_threshold=1000,
  toast.autovacuum_vacuum_scale_factor=0.03
);
CREATE UNIQUE INDEX log_details_default_pkey ON log_details_default USING btree (seq, at_ms); -- primary key

create table log_expiry (
  id smallint not null,
  project_id bigint not null,
  at_ms bigint not null,
  seq bigint not null
);
CREATE UNIQUE INDEX log_expiry_pkey ON log_expiry USING btree (id); -- primary key

create table logs (
  project_id bigint not null,
  at_ms bigint not null,
  seq bigint not null,
  message_key bigint not null,
  state smallint not null,
  run_key bigint,
  response_status smallint
) partition by range (at_ms);
CREATE UNIQUE INDEX logs_pkey ON ONLY logs USING btree (project_id, at_ms, seq); -- primary key
CREATE INDEX logs_message ON ONLY logs USING btree (message_key);
CREATE INDEX logs_run ON ONLY logs USING btree (run_key, at_ms, seq) WHERE (run_key IS NOT NULL);

-- partition of logs: default
create table logs_default (
  project_id bigint not null,
  at_ms bigint not null,
  seq bigint not null,
  message_key bigint not null,
  state smallint not null,
  run_key bigint,
  response_status smallint
) with (
  autovacuum_vacuum_scale_factor=0.03,
  autovacuum_vacuum_threshold=1000
);
CREATE UNIQUE INDEX logs_default_pkey ON logs_default USING btree (project_id, at_ms, seq); -- primary key
CREATE INDEX logs_default_message_key_idx ON logs_default USING btree (message_key);
CREATE INDEX logs_default_run_key_at_ms_seq_idx ON logs_default USING btree (run_key, at_ms, seq) WHERE (run_key IS NOT NULL);

create table message_counts (
  project_id bigint not null,
  day bigint not null,
  messages bigint not null
);
CREATE UNIQUE INDEX message_counts_pkey ON message_counts USING btree (project_id, day); -- primary key

create table messages (
  key bigint not null,
  project_id bigint not null,
  origin text collate "C" not null,
  due_at_ms bigint not null,
  bytes bigint not null,
  retried bigint not null,
  wait_state smallint not null,
  claimed_at_ms bigint,
  claim_token bigint,
  worker text collate "C",
  cancel_requested_at_ms bigint,
  queue_id bigint,
  queue_position bigint,
  queue_permit bigint,
  flow_key text collate "C",
  run_key bigint,
  journal_position bigint,
  parkings bigint
) with (
  fillfactor=70,
  autovacuum_vacuum_scale_factor=0.01,
  autovacuum_vacuum_threshold=500,
  autovacuum_vacuum_cost_delay=0,
  autovacuum_analyze_scale_factor=0.02,
  vacuum_index_cleanup=on
);
CREATE UNIQUE INDEX messages_pkey ON messages USING btree (key); -- primary key
CREATE INDEX messages_backlogs ON messages USING btree (project_id, origin, due_at_ms, key) WHERE ((claim_token IS NULL) AND (wait_state = 1));
CREATE INDEX messages_claimed ON messages USING btree (project_id, key) WHERE (claim_token IS NOT NULL);
CREATE INDEX messages_due ON messages USING btree (due_at_ms, key) WHERE ((claim_token IS NULL) AND (wait_state = 0));
CREATE INDEX messages_due_of_project ON messages USING btree (project_id, due_at_ms, key) WHERE ((claim_token IS NULL) AND (wait_state = 0));
CREATE INDEX messages_flow ON messages USING btree (project_id, flow_key, due_at_ms, key) WHERE ((claim_token IS NULL) AND (wait_state = 2));
CREATE INDEX messages_flow_permits ON messages USING btree (project_id, flow_key) WHERE ((claim_token IS NOT NULL) AND (flow_key IS NOT NULL));
CREATE INDEX messages_flow_queued ON messages USING btree (project_id, flow_key) WHERE ((claim_token IS NULL) AND (wait_state = 3) AND (flow_key IS NOT NULL));
CREATE INDEX messages_flow_released ON messages USING btree (project_id, flow_key) WHERE ((claim_token IS NULL) AND (wait_state = ANY (ARRAY[1, 4])) AND (flow_key IS NOT NULL));
CREATE INDEX messages_of_parked_runs ON messages USING btree (project_id, run_key, key) WHERE (parkings IS NOT NULL);
CREATE INDEX messages_queue_permits ON messages USING btree (project_id, queue_id, queue_permit) WHERE (queue_permit IS NOT NULL);
CREATE INDEX messages_queued ON messages USING btree (project_id, queue_id, queue_position) WHERE ((claim_token IS NULL) AND (wait_state = 3));
CREATE INDEX messages_run ON messages USING btree (run_key, key) WHERE (run_key IS NOT NULL);
CREATE INDEX messages_waiting_for_project ON messages USING btree (project_id, due_at_ms, key) WHERE ((claim_token IS NULL) AND (wait_state = 4));

create table migrations (
  number integer not null,
  name text collate "C" not null,
  breaking integer not null
);
CREATE UNIQUE INDEX migrations_pkey ON migrations USING btree (number); -- primary key

create table minutes (
  project_id bigint not null,
  at_ms bigint not null,
  accepted bigint not null,
  delivered bigint not null,
  failed_attempts bigint not null,
  dead bigint not null,
  runs_started bigint not null,
  runs_succeeded bigint not null,
  runs_failed bigint not null,
  runs_canceled bigint not null,
  latency_0 bigint not null,
  latency_1 bigint not null,
  latency_2 bigint not null,
  latency_3 bigint not null,
  latency_4 bigint not null,
  latency_5 bigint not null,
  latency_6 bigint not null,
  latency_7 bigint not null,
  latency_8 bigint not null,
  latency_9 bigint not null,
  latency_10 bigint not null,
  latency_11 bigint not null,
  lag_0 bigint not null,
  lag_1 bigint not null,
  lag_2 bigint not null,
  lag_3 bigint not null,
  lag_4 bigint not null,
  lag_5 bigint not null,
  lag_6 bigint not null,
  lag_7 bigint not null,
  lag_8 bigint not null,
  lag_9 bigint not null,
  lag_10 bigint not null,
  lag_11 bigint not null
) with (
  fillfactor=70,
  autovacuum_vacuum_scale_factor=0.01,
  autovacuum_vacuum_threshold=500,
  autovacuum_vacuum_cost_delay=0,
  autovacuum_analyze_scale_factor=0.02,
  vacuum_index_cleanup=on
);
CREATE UNIQUE INDEX minutes_pkey ON minutes USING btree (project_id, at_ms); -- primary key
CREATE INDEX minutes_at ON minutes USING btree (at_ms, project_id);

create table numbers (
  name text collate "C" not null,
  next bigint not null,
  until bigint,
  server text collate "C"
) with (
  fillfactor=70,
  autovacuum_vacuum_scale_factor=0.01,
  autovacuum_vacuum_threshold=500,
  autovacuum_vacuum_cost_delay=0,
  autovacuum_analyze_scale_factor=0.02,
  vacuum_index_cleanup=on
);
CREATE UNIQUE INDEX numbers_pkey ON numbers USING btree (name); -- primary key

create table operator_events (
  kind text collate "C" not null,
  project_id bigint not null,
  facts bigint not null,
  first_at_ms bigint not null,
  last_at_ms bigint not null,
  example text collate "C" not null,
  quiet_until_ms bigint not null,
  reported_example text collate "C",
  due_at_ms bigint
) with (
  fillfactor=70,
  autovacuum_vacuum_scale_factor=0.01,
  autovacuum_vacuum_threshold=500,
  autovacuum_vacuum_cost_delay=0,
  autovacuum_analyze_scale_factor=0.02,
  vacuum_index_cleanup=on
);
CREATE UNIQUE INDEX operator_events_pkey ON operator_events USING btree (kind, project_id); -- primary key
CREATE INDEX operator_events_due ON operator_events USING btree (due_at_ms) WHERE (due_at_ms IS NOT NULL);

create table operator_facts (
  key bigint not null,
  kind text collate "C" not null,
  project_id bigint not null,
  at_ms bigint not null,
  example text collate "C" not null
) with (
  fillfactor=70,
  autovacuum_vacuum_scale_factor=0.01,
  autovacuum_vacuum_threshold=500,
  autovacuum_vacuum_cost_delay=0,
  autovacuum_analyze_scale_factor=0.02,
  vacuum_index_cleanup=on
);
CREATE UNIQUE INDEX operator_facts_pkey ON operator_facts USING btree (key); -- primary key

create table pending_events (
  key bigint not null,
  project_id bigint not null,
  run_key bigint not null,
  event_id text collate "C" not null,
  body bytea
) with (
  autovacuum_vacuum_scale_factor=0.03,
  autovacuum_vacuum_threshold=1000,
  toast.autovacuum_vacuum_scale_factor=0.03
);
CREATE UNIQUE INDEX pending_events_pkey ON pending_events USING btree (key); -- primary key
CREATE INDEX pending_events_run ON pending_events USING btree (run_key, event_id, key);

create table project_moves (
  project_id bigint not null,
  from_cell bigint not null,
  to_cell bigint not null,
  phase text collate "C" not null,
  started_at_ms bigint not null,
  mover text collate "C" not null,
  seen_at_ms bigint not null
);
CREATE UNIQUE INDEX project_moves_pkey ON project_moves USING btree (project_id); -- primary key

create table projects (
  id bigint not null,
  name text collate "C" not null,
  signing_current text collate "C" not null,
  signing_next text collate "C" not null,
  created_at_ms bigint not null,
  cell bigint not null default 1,
  placement smallint not null default 0
);
CREATE UNIQUE INDEX projects_pkey ON projects USING btree (id); -- primary key
CREATE INDEX projects_moving ON projects USING btree (id) WHERE (placement = ANY (ARRAY[1, 2, 3]));
CREATE UNIQUE INDEX projects_name_key ON projects USING btree (name);

create table queues (
  project_id bigint not null,
  id bigint not null,
  name text collate "C" not null,
  parallelism bigint not null,
  paused smallint not null,
  next_position bigint not null,
  created_at_ms bigint not null,
  updated_at_ms bigint not null,
  deleted smallint not null
) with (
  fillfactor=70,
  autovacuum_vacuum_scale_factor=0.01,
  autovacuum_vacuum_threshold=500,
  autovacuum_vacuum_cost_delay=0,
  autovacuum_analyze_scale_factor=0.02,
  vacuum_index_cleanup=on
);
CREATE UNIQUE INDEX queues_pkey ON queues USING btree (project_id, id); -- primary key
CREATE INDEX queues_deleted ON queues USING btree (project_id, id) WHERE (deleted = 1);
CREATE UNIQUE INDEX queues_name ON queues USING btree (project_id, name) WHERE (deleted = 0);

create table runs (
  key bigint not null,
  project_id bigint not null,
  id text collate "C" not null,
  url text collate "C" not null,
  created_at_ms bigint not null,
  state smallint not null,
  version bigint not null,
  entries bigint not null,
  journal_bytes bigint not null,
  completed_at_ms bigint,
  dead_key bigint,
  failure_key bigint,
  failure_state smallint,
  config text collate "C" not null,
  response bytea
) with (
  fillfactor=70,
  autovacuum_vacuum_scale_factor=0.01,
  autovacuum_vacuum_threshold=500,
  autovacuum_vacuum_cost_delay=0,
  autovacuum_analyze_scale_factor=0.02,
  vacuum_index_cleanup=on
);
CREATE UNIQUE INDEX runs_pkey ON runs USING btree (key); -- primary key
CREATE UNIQUE INDEX runs_active ON runs USING btree (project_id, id) WHERE (state = 1);
CREATE INDEX runs_completed ON runs USING btree (completed_at_ms, key) WHERE ((completed_at_ms IS NOT NULL) AND (dead_key IS NULL));
CREATE INDEX runs_created ON runs USING btree (project_id, created_at_ms, key);
CREATE INDEX runs_failed ON runs USING btree (completed_at_ms, key) WHERE (dead_key IS NOT NULL);
CREATE INDEX runs_id ON runs USING btree (project_id, id, created_at_ms, key);

create table schedule_plans (
  key bigint not null,
  cron text collate "C" not null,
  destination text collate "C" not null,
  is_group smallint not null,
  method text collate "C" not null,
  header text collate "C",
  settings text collate "C" not null,
  delay_ms bigint,
  caller_ip text collate "C",
  catch_up text collate "C",
  overlap text collate "C",
  kept text collate "C",
  body bytea
);
CREATE UNIQUE INDEX schedule_plans_pkey ON schedule_plans USING btree (key); -- primary key

create table schedules (
  key bigint not null,
  project_id bigint not null,
  id text collate "C" not null,
  created_at_ms bigint not null,
  bytes bigint not null,
  version bigint not null,
  paused smallint not null,
  next_at_ms bigint not null,
  passed_until_ms bigint,
  last_at_ms bigint,
  last_message_key bigint,
  last_message_count bigint,
  error text collate "C"
) with (
  fillfactor=70,
  autovacuum_vacuum_scale_factor=0.01,
  autovacuum_vacuum_threshold=500,
  autovacuum_vacuum_cost_delay=0,
  autovacuum_analyze_scale_factor=0.02,
  vacuum_index_cleanup=on
);
CREATE UNIQUE INDEX schedules_pkey ON schedules USING btree (key); -- primary key
CREATE INDEX schedules_due ON schedules USING btree (next_at_ms, key) WHERE (paused = 0);
CREATE UNIQUE INDEX schedules_id ON schedules USING btree (project_id, id);

create table tokens (
  hash text collate "C" not null,
  project_id bigint not null,
  scope text collate "C" not null,
  name text collate "C",
  created_at_ms bigint not null,
  last_used_at_ms bigint
);
CREATE UNIQUE INDEX tokens_pkey ON tokens USING btree (hash); -- primary key

create table url_group_endpoints (
  project_id bigint not null,
  group_name text collate "C" not null,
  position bigint not null,
  url text collate "C" not null,
  name text collate "C"
);
CREATE UNIQUE INDEX url_group_endpoints_pkey ON url_group_endpoints USING btree (project_id, group_name, "position"); -- primary key

create table url_groups (
  project_id bigint not null,
  name text collate "C" not null,
  created_at_ms bigint not null,
  updated_at_ms bigint not null,
  headers text collate "C"
);
CREATE UNIQUE INDEX url_groups_pkey ON url_groups USING btree (project_id, name); -- primary key

create table waiters (
  key bigint not null,
  project_id bigint not null,
  run_key bigint not null,
  event_id text collate "C" not null,
  deadline_ms bigint not null
) with (
  autovacuum_vacuum_scale_factor=0.03,
  autovacuum_vacuum_threshold=1000,
  toast.autovacuum_vacuum_scale_factor=0.03
);
CREATE UNIQUE INDEX waiters_pkey ON waiters USING btree (key); -- primary key
CREATE INDEX waiters_deadline ON waiters USING btree (deadline_ms, key);
CREATE INDEX waiters_event ON waiters USING btree (project_id, event_id, key);
CREATE INDEX waiters_run ON waiters USING btree (run_key, event_id, key);

create table workers (
  id text collate "C" not null,
  started_at_ms bigint not null,
  beat_at_ms bigint not null,
  timeout_ms bigint not null,
  leaving smallint not null,
  accounts_version bigint not null
) with (
  fillfactor=70,
  autovacuum_vacuum_scale_factor=0.01,
  autovacuum_vacuum_threshold=500,
  autovacuum_vacuum_cost_delay=0,
  autovacuum_analyze_scale_factor=0.02,
  vacuum_index_cleanup=on
);
CREATE UNIQUE INDEX workers_pkey ON workers USING btree (id); -- primary key
