CREATE TABLE migrations (number integer primary key, name text not null, breaking integer not null);

CREATE TABLE projects (
  id integer primary key,
  name text not null unique,
  signing_current text not null,
  signing_next text not null,
  created_at_ms integer not null,
  cell integer not null default 1,
  placement integer not null default 0
);

CREATE INDEX projects_moving on projects (id) where placement in (1, 2, 3);

CREATE TABLE tokens (
  hash text primary key,
  project_id integer not null,
  scope text not null,
  name text,
  created_at_ms integer not null,
  last_used_at_ms integer
);

CREATE TABLE numbers (
  name text primary key,
  next integer not null,
  until integer
);

CREATE TABLE messages (
  key integer primary key,
  project_id integer not null,
  origin text not null,
  due_at_ms integer not null,
  bytes integer not null,
  retried integer not null,
  wait_state integer not null,
  claimed_at_ms integer,
  claim_token integer,
  worker text,
  cancel_requested_at_ms integer,
  queue_id integer,
  queue_position integer,
  queue_permit integer,
  flow_key text,
  run_key integer,
  journal_position integer,
  parkings integer
);

CREATE INDEX messages_due on messages (due_at_ms, key) where claim_token is null and wait_state = 0;

CREATE INDEX messages_due_of_project on messages (project_id, due_at_ms, key) where claim_token is null and wait_state = 0;

CREATE INDEX messages_backlogs on messages (project_id, origin, due_at_ms, key) where claim_token is null and wait_state = 1;

CREATE INDEX messages_flow on messages (project_id, flow_key, due_at_ms, key) where claim_token is null and wait_state = 2;

CREATE INDEX messages_queued on messages (project_id, queue_id, queue_position) where claim_token is null and wait_state = 3;

CREATE INDEX messages_waiting_for_project on messages (project_id, due_at_ms, key) where claim_token is null and wait_state = 4;

CREATE INDEX messages_claimed on messages (project_id, key) where claim_token is not null;

CREATE INDEX messages_flow_permits on messages (project_id, flow_key) where claim_token is not null and flow_key is not null;

CREATE INDEX messages_queue_permits on messages (project_id, queue_id, queue_permit) where queue_permit is not null;

CREATE INDEX messages_flow_released on messages (project_id, flow_key) where claim_token is null and wait_state in (1, 4) and flow_key is not null;

CREATE INDEX messages_flow_queued on messages (project_id, flow_key) where claim_token is null and wait_state = 3 and flow_key is not null;

CREATE INDEX messages_run on messages (run_key, key) where run_key is not null;

CREATE INDEX messages_of_parked_runs on messages (project_id, run_key, key) where parkings is not null;

CREATE TABLE contents (
  key integer primary key,
  project_id integer not null,
  id text not null,
  url text not null,
  origin text not null,
  path text not null,
  method text not null,
  header text,
  created_at_ms integer not null,
  not_before_ms integer not null,
  caller_ip text,
  topic_name text,
  queue_name text,
  schedule_id text,
  flow_control_key text,
  labels text,
  replay_of integer,
  settings text not null,
  body blob
);

CREATE INDEX contents_replays on contents (replay_of, key) where replay_of is not null;

CREATE TABLE dead (
  project_id integer not null,
  failed_at_ms integer not null,
  key integer not null,
  run_key integer,
  retried integer not null,
  response_status integer not null,
  response_header text,
  response_body blob,
  primary key (project_id, failed_at_ms, key)
);

CREATE INDEX dead_key on dead (key);

CREATE INDEX dead_runs on dead (project_id, failed_at_ms, key) where run_key is not null;

CREATE TABLE deduplications (
  project_id integer not null,
  hash text not null,
  message_id text not null,
  expires_at_ms integer not null,
  primary key (project_id, hash)
) without rowid;

CREATE INDEX deduplications_expiry on deduplications (expires_at_ms);

CREATE TABLE queues (
  project_id integer not null,
  id integer not null,
  name text not null,
  parallelism integer not null,
  paused integer not null,
  next_position integer not null,
  created_at_ms integer not null,
  updated_at_ms integer not null,
  deleted integer not null,
  primary key (project_id, id)
);

CREATE UNIQUE INDEX queues_name on queues (project_id, name) where deleted = 0;

CREATE INDEX queues_deleted on queues (project_id, id) where deleted = 1;

CREATE TABLE flow_keys (
  project_id integer not null,
  key text not null,
  parallelism integer,
  rate integer,
  period_s integer not null,
  parallelism_pinned integer not null,
  rate_pinned integer not null,
  paused integer not null,
  window_started_at_ms integer,
  window_count integer not null,
  used_at_ms integer not null,
  wake_at_ms integer,
  primary key (project_id, key)
) without rowid;

CREATE INDEX flow_keys_wake on flow_keys (wake_at_ms, project_id, key) where wake_at_ms is not null;

CREATE INDEX flow_keys_used on flow_keys (used_at_ms);

CREATE TABLE logs (
  project_id integer not null,
  at_ms integer not null,
  seq integer not null,
  message_key integer not null,
  state integer not null,
  run_key integer,
  response_status integer,
  primary key (project_id, at_ms, seq)
) without rowid;

CREATE TABLE log_details (
  seq integer,
  at_ms integer not null,
  error text,
  next_delivery_at_ms integer,
  response_status integer,
  response_header text,
  response_body blob,
  primary key (seq)
);

CREATE INDEX logs_message on logs (message_key);

CREATE INDEX logs_run on logs (run_key, at_ms, seq) where run_key is not null;

CREATE TABLE url_groups (
  project_id integer not null,
  name text not null,
  created_at_ms integer not null,
  updated_at_ms integer not null,
  headers text,
  primary key (project_id, name)
) without rowid;

CREATE TABLE url_group_endpoints (
  project_id integer not null,
  group_name text not null,
  position integer not null,
  url text not null,
  name text,
  primary key (project_id, group_name, position)
) without rowid;

CREATE TABLE schedules (
  key integer primary key,
  project_id integer not null,
  id text not null,
  created_at_ms integer not null,
  bytes integer not null,
  version integer not null,
  paused integer not null,
  next_at_ms integer not null,
  passed_until_ms integer,
  last_at_ms integer,
  last_message_key integer,
  last_message_count integer,
  error text
);

CREATE UNIQUE INDEX schedules_id on schedules (project_id, id);

CREATE INDEX schedules_due on schedules (next_at_ms, key) where paused = 0;

CREATE TABLE schedule_plans (
  key integer primary key,
  cron text not null,
  destination text not null,
  is_group integer not null,
  method text not null,
  header text,
  settings text not null,
  delay_ms integer,
  caller_ip text,
  catch_up text,
  overlap text,
  kept text,
  body blob
);

CREATE TABLE runs (
  key integer primary key,
  project_id integer not null,
  id text not null,
  url text not null,
  created_at_ms integer not null,
  state integer not null,
  version integer not null,
  entries integer not null,
  journal_bytes integer not null,
  completed_at_ms integer,
  dead_key integer,
  failure_key integer,
  failure_state integer,
  config text not null,
  response blob
);

CREATE UNIQUE INDEX runs_active on runs (project_id, id) where state = 1;

CREATE INDEX runs_id on runs (project_id, id, created_at_ms, key);

CREATE INDEX runs_created on runs (project_id, created_at_ms, key);

CREATE INDEX runs_completed on runs (completed_at_ms, key) where completed_at_ms is not null and dead_key is null;

CREATE INDEX runs_failed on runs (completed_at_ms, key) where dead_key is not null;

CREATE TABLE ending_runs (
  key integer primary key,
  project_id integer not null,
  cancel_at_ms integer not null
);

CREATE TABLE journal (
  run_key integer not null,
  position integer not null,
  kind integer not null,
  key integer not null,
  entry_key text not null,
  at_ms integer not null,
  primary key (run_key, position)
) without rowid;

CREATE UNIQUE INDEX journal_entry_key on journal (run_key, entry_key);

CREATE INDEX journal_key on journal (key);

CREATE TABLE invocations (
  run_key integer not null,
  key integer not null,
  parent_key integer not null,
  primary key (run_key, key)
) without rowid;

CREATE TABLE waiters (
  key integer primary key,
  project_id integer not null,
  run_key integer not null,
  event_id text not null,
  deadline_ms integer not null
);

CREATE INDEX waiters_event on waiters (project_id, event_id, key);

CREATE INDEX waiters_run on waiters (run_key, event_id, key);

CREATE INDEX waiters_deadline on waiters (deadline_ms, key);

CREATE TABLE pending_events (
  key integer primary key,
  project_id integer not null,
  run_key integer not null,
  event_id text not null,
  body blob
);

CREATE INDEX pending_events_run on pending_events (run_key, event_id, key);

CREATE TABLE message_counts (
  project_id integer not null,
  day integer not null,
  messages integer not null,
  primary key (project_id, day)
) without rowid;

CREATE TABLE minutes (
  project_id integer not null,
  at_ms integer not null,
  accepted integer not null,
  delivered integer not null,
  failed_attempts integer not null,
  dead integer not null,
  runs_started integer not null,
  runs_succeeded integer not null,
  runs_failed integer not null,
  runs_canceled integer not null,
  latency_0 integer not null,
  latency_1 integer not null,
  latency_2 integer not null,
  latency_3 integer not null,
  latency_4 integer not null,
  latency_5 integer not null,
  latency_6 integer not null,
  latency_7 integer not null,
  latency_8 integer not null,
  latency_9 integer not null,
  latency_10 integer not null,
  latency_11 integer not null,
  lag_0 integer not null,
  lag_1 integer not null,
  lag_2 integer not null,
  lag_3 integer not null,
  lag_4 integer not null,
  lag_5 integer not null,
  lag_6 integer not null,
  lag_7 integer not null,
  lag_8 integer not null,
  lag_9 integer not null,
  lag_10 integer not null,
  lag_11 integer not null,
  primary key (project_id, at_ms)
) without rowid;

CREATE INDEX minutes_at on minutes (at_ms, project_id);

CREATE TABLE operator_facts (
  key integer primary key,
  kind text not null,
  project_id integer not null,
  at_ms integer not null,
  example text not null
);

CREATE TABLE operator_events (
  kind text not null,
  project_id integer not null,
  facts integer not null,
  first_at_ms integer not null,
  last_at_ms integer not null,
  example text not null,
  quiet_until_ms integer not null,
  reported_example text,
  due_at_ms integer,
  primary key (kind, project_id)
) without rowid;

CREATE INDEX operator_events_due on operator_events (due_at_ms) where due_at_ms is not null;

CREATE TABLE workers (
  id text primary key,
  started_at_ms integer not null,
  beat_at_ms integer not null,
  timeout_ms integer not null,
  leaving integer not null,
  accounts_version integer not null
);

CREATE TABLE cells (
  id integer primary key,
  name text not null unique,
  url text not null,
  added_at_ms integer not null,
  draining integer not null
);

CREATE TABLE project_moves (
  project_id integer primary key,
  from_cell integer not null,
  to_cell integer not null,
  phase text not null,
  started_at_ms integer not null,
  mover text not null,
  seen_at_ms integer not null
);
