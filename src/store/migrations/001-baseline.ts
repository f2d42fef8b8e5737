/** The schema of version 0.1.0, by subject. Later versions change the schema in migrations of their own. */
import type { SqlDialect } from '../driver.ts';
import type { Migration } from './migration.ts';

export const baseline: Migration = {
  number: 1,
  name: 'baseline',
  breaking: true,
  statements: (dialect: SqlDialect) => [
    ...accounts(dialect),
    ...messages(dialect),
    ...lanes(dialect),
    ...logs(dialect),
    ...urlGroups(dialect),
    ...schedules(dialect),
    ...runs(dialect),
    ...counts(dialect),
    ...operatorEvents(dialect),
    ...workers(dialect),
    ...cells(dialect),
  ],
};

const accounts = ({ bigint, smallint }: SqlDialect): string[] => [
  // `cell`, in the directory: the cell of the project.
  // `placement`, in each cell: the state of the project there (operations/locking/placement.ts).
  `create table projects (
  id ${bigint} primary key,
  name text not null unique,
  signing_current text not null,
  signing_next text not null,
  created_at_ms ${bigint} not null,
  cell ${bigint} not null default 1,
  placement ${smallint} not null default 0
)`,
  'create index projects_moving on projects (id) where placement in (1, 2, 3)',
  `create table tokens (
  hash text primary key,
  project_id ${bigint} not null,
  scope text not null,
  name text,
  created_at_ms ${bigint} not null,
  last_used_at_ms ${bigint}
)`,
];

/**
 * The fast path of a message (accepted as claimed, then delivered) touches `messages` by key, `contents` once and `logs` three
 * times. It touches only the partial indexes of claimed messages, which are as small as the number of messages in flight.
 */
const messages = ({ bigint, smallint, bytes, clustered, hot, appendOnly, manyWriters }: SqlDialect): string[] => [
  // Sequences. `until`: the end of the range of numbers of this cell; null: it is the only cell.
  // `server`: the server that gave out the last numbers. After a failover, the next server may not know all of these
  // numbers.
  `create table numbers (
  name text primary key,
  next ${bigint} not null,
  until ${bigint}${manyWriters ? ',\n  server text' : ''}
)${hot}`,
  `insert into numbers (name, next) values
  ('keys and tokens', 1), ('log entries', 1), ('queues', 1), ('accounts', 1)`,

  // This table has only unfinished messages, and only the columns that dispatching needs.
  // `wait_state`: what an unclaimed message waits for (operations/lanes/wait-states.ts).
  // `queue_position`: the order of acceptance within the queue.
  // `queue_permit`: the key of the message that received the permit: this one, or the one on which a callback reports.
  // `parkings`: how often in a row a message of a run was parked because the code of its workflow has changed; null: its last
  // attempt had another outcome; 0: a request has made the message due.
  `create table messages (
  key ${bigint} primary key,
  project_id ${bigint} not null,
  origin text not null,
  due_at_ms ${bigint} not null,
  bytes ${bigint} not null,
  retried ${bigint} not null,
  wait_state ${smallint} not null,
  claimed_at_ms ${bigint},
  claim_token ${bigint},
  worker text,
  cancel_requested_at_ms ${bigint},
  queue_id ${bigint},
  queue_position ${bigint},
  queue_permit ${bigint},
  flow_key text,
  run_key ${bigint},
  journal_position ${bigint},
  parkings ${bigint}
)${hot}`,
  // A message that waits for a lane is in the index of that lane and not in a due index, so a long wait list delays no
  // other message. Each index starts with the project, so a claim for one project does not scan the backlog of another
  // project.
  'create index messages_due on messages (due_at_ms, key) where claim_token is null and wait_state = 0',
  'create index messages_due_of_project on messages (project_id, due_at_ms, key) where claim_token is null and wait_state = 0',
  'create index messages_backlogs on messages (project_id, origin, due_at_ms, key) where claim_token is null and wait_state = 1',
  'create index messages_flow on messages (project_id, flow_key, due_at_ms, key) where claim_token is null and wait_state = 2',
  'create index messages_queued on messages (project_id, queue_id, queue_position) where claim_token is null and wait_state = 3',
  'create index messages_waiting_for_project on messages (project_id, due_at_ms, key) where claim_token is null and wait_state = 4',
  // The holders of permits are derived from these three indexes, never counted up and down (P4). By the first index, a
  // starting server releases the messages that were in flight without reading the messages that wait.
  'create index messages_claimed on messages (project_id, key) where claim_token is not null',
  'create index messages_flow_permits on messages (project_id, flow_key) where claim_token is not null and flow_key is not null',
  'create index messages_queue_permits on messages (project_id, queue_id, queue_permit) where queue_permit is not null',
  // Messages that their flow-control key has released and that wait for their origin or project: they have a permit of the key.
  'create index messages_flow_released on messages (project_id, flow_key) where claim_token is null and wait_state in (1, 4) and flow_key is not null',
  // With the two indexes above and `messages_flow`, this index covers every wait state of a key's messages. If one index
  // covered all wait states, the planner would use it for the counts too, and each count would scan the whole wait list.
  'create index messages_flow_queued on messages (project_id, flow_key) where claim_token is null and wait_state = 3 and flow_key is not null',
  'create index messages_run on messages (run_key, key) where run_key is not null',
  'create index messages_of_parked_runs on messages (project_id, run_key, key) where parkings is not null',

  // The immutable content of a message, which its DLQ entry and its logs share.
  `create table contents (
  key ${bigint} primary key,
  project_id ${bigint} not null,
  id text not null,
  url text not null,
  origin text not null,
  path text not null,
  method text not null,
  header text,
  created_at_ms ${bigint} not null,
  not_before_ms ${bigint} not null,
  caller_ip text,
  topic_name text,
  queue_name text,
  schedule_id text,
  flow_control_key text,
  labels text,
  replay_of ${bigint},
  settings text not null,
  body ${bytes}
)${appendOnly}`,
  // `replay_of`: the key of the message that this message repeats.
  'create index contents_replays on contents (replay_of, key) where replay_of is not null',

  `create table dead (
  project_id ${bigint} not null,
  failed_at_ms ${bigint} not null,
  key ${bigint} not null,
  run_key ${bigint},
  retried ${bigint} not null,
  response_status ${bigint} not null,
  response_header text,
  response_body ${bytes},
  primary key (project_id, failed_at_ms, key)
)${appendOnly}`,
  'create index dead_key on dead (key)',
  'create index dead_runs on dead (project_id, failed_at_ms, key) where run_key is not null',

  `create table deduplications (
  project_id ${bigint} not null,
  hash text not null,
  message_id text not null,
  expires_at_ms ${bigint} not null,
  primary key (project_id, hash)
)${clustered}${appendOnly}`,
  'create index deduplications_expiry on deduplications (expires_at_ms)',
];

/** Queues and flow-control keys. The indexes of `messages` find the messages that wait for them. */
const lanes = ({ bigint, smallint, clustered, hot }: SqlDialect): string[] => [
  `create table queues (
  project_id ${bigint} not null,
  id ${bigint} not null,
  name text not null,
  parallelism ${bigint} not null,
  paused ${smallint} not null,
  next_position ${bigint} not null,
  created_at_ms ${bigint} not null,
  updated_at_ms ${bigint} not null,
  deleted ${smallint} not null,
  primary key (project_id, id)
)${hot}`,
  'create unique index queues_name on queues (project_id, name) where deleted = 0',
  'create index queues_deleted on queues (project_id, id) where deleted = 1',

  `create table flow_keys (
  project_id ${bigint} not null,
  key text not null,
  parallelism ${bigint},
  rate ${bigint},
  period_s ${bigint} not null,
  parallelism_pinned ${smallint} not null,
  rate_pinned ${smallint} not null,
  paused ${smallint} not null,
  window_started_at_ms ${bigint},
  window_count ${bigint} not null,
  used_at_ms ${bigint} not null,
  wake_at_ms ${bigint},
  primary key (project_id, key)
)${clustered}${hot}`,
  // When to check the wait list of a key again.
  'create index flow_keys_wake on flow_keys (wake_at_ms, project_id, key) where wake_at_ms is not null',
  'create index flow_keys_used on flow_keys (used_at_ms)',
];

const logs = ({ bigint, smallint, bytes, clustered, logPartitions }: SqlDialect): string[] => [
  // `seq` is unique over all logs. For an event of a run itself, `message_key` is the run's first message. Only delivered
  // messages have a `response_status` here; the status of an error is in `log_details`.
  `create table logs (
  project_id ${bigint} not null,
  at_ms ${bigint} not null,
  seq ${bigint} not null,
  message_key ${bigint} not null,
  state ${smallint} not null,
  run_key ${bigint},
  response_status ${smallint},
  primary key (project_id, at_ms, seq)
)${clustered}${logPartitions?.partitioned ?? ''}`,
  // This table has rows only for events with more data than a state. `at_ms` repeats the time of the log entry, so that
  // both tables can be partitioned by day.
  `create table log_details (
  seq ${bigint},
  at_ms ${bigint} not null,
  error text,
  next_delivery_at_ms ${bigint},
  response_status ${bigint},
  response_header text,
  response_body ${bytes},
  primary key (${logPartitions ? 'seq, at_ms' : 'seq'})
)${logPartitions?.partitioned ?? ''}`,
  ...(logPartitions?.tables ?? []),
  'create index logs_message on logs (message_key)',
  'create index logs_run on logs (run_key, at_ms, seq) where run_key is not null',
];

const urlGroups = ({ bigint, clustered }: SqlDialect): string[] => [
  `create table url_groups (
  project_id ${bigint} not null,
  name text not null,
  created_at_ms ${bigint} not null,
  updated_at_ms ${bigint} not null,
  headers text,
  primary key (project_id, name)
)${clustered}`,
  `create table url_group_endpoints (
  project_id ${bigint} not null,
  group_name text not null,
  position ${bigint} not null,
  url text not null,
  name text,
  primary key (project_id, group_name, position)
)${clustered}`,
];

const schedules = ({ bigint, smallint, bytes, hot }: SqlDialect): string[] => [
  // The columns that change with each trigger. The body is in another table, so that a trigger does not rewrite it.
  `create table schedules (
  key ${bigint} primary key,
  project_id ${bigint} not null,
  id text not null,
  created_at_ms ${bigint} not null,
  bytes ${bigint} not null,
  version ${bigint} not null,
  paused ${smallint} not null,
  next_at_ms ${bigint} not null,
  passed_until_ms ${bigint},
  last_at_ms ${bigint},
  last_message_key ${bigint},
  last_message_count ${bigint},
  error text
)${hot}`,
  'create unique index schedules_id on schedules (project_id, id)',
  'create index schedules_due on schedules (next_at_ms, key) where paused = 0',
  `create table schedule_plans (
  key ${bigint} primary key,
  cron text not null,
  destination text not null,
  is_group ${smallint} not null,
  method text not null,
  header text,
  settings text not null,
  delay_ms ${bigint},
  caller_ip text,
  catch_up text,
  overlap text,
  kept text,
  body ${bytes}
)`,
];

/** Journal entries are stored in `contents`, like messages; `journal` only lists them in order. */
const runs = ({ bigint, smallint, bytes, clustered, hot, appendOnly }: SqlDialect): string[] => [
  // The key of a run is the key of its first message. The content of that message has the URL, labels and flow-control
  // key by which runs are filtered.
  `create table runs (
  key ${bigint} primary key,
  project_id ${bigint} not null,
  id text not null,
  url text not null,
  created_at_ms ${bigint} not null,
  state ${smallint} not null,
  version ${bigint} not null,
  entries ${bigint} not null,
  journal_bytes ${bigint} not null,
  completed_at_ms ${bigint},
  dead_key ${bigint},
  failure_key ${bigint},
  failure_state ${smallint},
  config text not null,
  response ${bytes}
)${hot}`,
  // At most one run of an id is active.
  'create unique index runs_active on runs (project_id, id) where state = 1',
  'create index runs_id on runs (project_id, id, created_at_ms, key)',
  'create index runs_created on runs (project_id, created_at_ms, key)',
  // For retention. A run with a DLQ entry is kept for as long as it can be resumed.
  'create index runs_completed on runs (completed_at_ms, key) where completed_at_ms is not null and dead_key is null',
  'create index runs_failed on runs (completed_at_ms, key) where dead_key is not null',
  // Runs whose messages are never claimed. `cancel_at_ms`: from this time on, their remaining messages are cancelled in
  // batches. 0: the run has ended, and has more messages left than one transaction cancels. Otherwise the run is being
  // revived, and waits until this time for its next chunk.
  `create table ending_runs (
  key ${bigint} primary key,
  project_id ${bigint} not null,
  cancel_at_ms ${bigint} not null
)${appendOnly}`,

  `create table journal (
  run_key ${bigint} not null,
  position ${bigint} not null,
  kind ${smallint} not null,
  key ${bigint} not null,
  entry_key text not null,
  at_ms ${bigint} not null,
  primary key (run_key, position)
)${clustered}${appendOnly}`,
  'create unique index journal_entry_key on journal (run_key, entry_key)',
  'create index journal_key on journal (key)',

  // The invocations (keys of their records) that wait for the end of a run.
  `create table invocations (
  run_key ${bigint} not null,
  key ${bigint} not null,
  parent_key ${bigint} not null,
  primary key (run_key, key)
)${clustered}${appendOnly}`,

  // The key is the key of the wait's record.
  `create table waiters (
  key ${bigint} primary key,
  project_id ${bigint} not null,
  run_key ${bigint} not null,
  event_id text not null,
  deadline_ms ${bigint} not null
)${appendOnly}`,
  'create index waiters_event on waiters (project_id, event_id, key)',
  'create index waiters_run on waiters (run_key, event_id, key)',
  'create index waiters_deadline on waiters (deadline_ms, key)',

  `create table pending_events (
  key ${bigint} primary key,
  project_id ${bigint} not null,
  run_key ${bigint} not null,
  event_id text not null,
  body ${bytes}
)${appendOnly}`,
  'create index pending_events_run on pending_events (run_key, event_id, key)',
];

const COUNTS = [
  'accepted',
  'delivered',
  'failed_attempts',
  'dead',
  'runs_started',
  'runs_succeeded',
  'runs_failed',
  'runs_canceled',
];
const BUCKETS = Array.from({ length: 12 }, (_, index) => index);

const counts = ({ bigint, clustered, hot }: SqlDialect): string[] => [
  // Written only while a daily limit is set. `day`: days since the Unix epoch.
  `create table message_counts (
  project_id ${bigint} not null,
  day ${bigint} not null,
  messages ${bigint} not null,
  primary key (project_id, day)
)${clustered}`,
  // Counts of a project's messages and runs per minute. The buckets of the two histograms are columns, so that workers can
  // increment them without reading.
  `create table minutes (
  project_id ${bigint} not null,
  at_ms ${bigint} not null,
${[...COUNTS, ...BUCKETS.map((index) => `latency_${index}`), ...BUCKETS.map((index) => `lag_${index}`)]
  .map((name) => `  ${name} ${bigint} not null,`)
  .join('\n')}
  primary key (project_id, at_ms)
)${clustered}${hot}`,
  'create index minutes_at on minutes (at_ms, project_id)',
];

/** Facts that are not counted yet, and the counts by kind and project. */
const operatorEvents = ({ bigint, clustered, hot }: SqlDialect): string[] => [
  `create table operator_facts (
  key ${bigint} primary key,
  kind text not null,
  project_id ${bigint} not null,
  at_ms ${bigint} not null,
  example text not null
)${hot}`,
  `create table operator_events (
  kind text not null,
  project_id ${bigint} not null,
  facts ${bigint} not null,
  first_at_ms ${bigint} not null,
  last_at_ms ${bigint} not null,
  example text not null,
  quiet_until_ms ${bigint} not null,
  reported_example text,
  due_at_ms ${bigint},
  primary key (kind, project_id)
)${clustered}${hot}`,
  'create index operator_events_due on operator_events (due_at_ms) where due_at_ms is not null',
];

/** The workers that share the database. */
const workers = ({ bigint, smallint, hot }: SqlDialect): string[] => [
  // Times are of the database's clock. If a worker sends no heartbeat for its own `timeout_ms`, any other worker may expire it.
  // `accounts_version`: the version of the accounts with which the worker admits callers and signs.
  `create table workers (
  id text primary key,
  started_at_ms ${bigint} not null,
  beat_at_ms ${bigint} not null,
  timeout_ms ${bigint} not null,
  leaving ${smallint} not null,
  accounts_version ${bigint} not null
)${hot}`,
];

/** In the directory: the cells, and the projects that are being moved between them. */
const cells = ({ bigint, smallint }: SqlDialect): string[] => [
  // Every cell except the first, which is this database.
  `create table cells (
  id ${bigint} primary key,
  name text not null unique,
  url text not null,
  added_at_ms ${bigint} not null,
  draining ${smallint} not null
)`,
  // The phase of each move, the command that runs it (`mover`), and the heartbeat of that command: another command takes over
  // only when the heartbeat stops. In the other cells the row only identifies the mover (src/cells/move/mover-check.ts).
  `create table project_moves (
  project_id ${bigint} primary key,
  from_cell ${bigint} not null,
  to_cell ${bigint} not null,
  phase text not null,
  started_at_ms ${bigint} not null,
  mover text not null,
  seen_at_ms ${bigint} not null
)`,
];
