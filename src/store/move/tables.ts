/** Lists all tables and columns that a move copies. A test compares this list with the schema, so that none is lost. */

export interface MovedTable {
  readonly name: string;
  /** The primary key, which is the order of reading. */
  readonly key: readonly string[];
  /** All columns, including the key. */
  readonly columns: readonly string[];
  /** The columns whose values can be kilobytes or megabytes: their sizes are read before their values. */
  readonly large: readonly string[];
}

/** Small tables first, so that a problem with the target shows early. */
export const MOVED_TABLES: readonly MovedTable[] = [
  table('numbers', 'name', 'next until'),
  table('projects', 'id', 'name signing_current signing_next created_at_ms cell placement'),
  table('cells', 'id', 'name url added_at_ms draining'),
  table('project_moves', 'project_id', 'from_cell to_cell phase started_at_ms mover seen_at_ms'),
  table('tokens', 'hash', 'project_id scope created_at_ms name last_used_at_ms'),
  table('message_counts', 'project_id day', 'messages'),
  table(
    'minutes',
    'project_id at_ms',
    `accepted delivered failed_attempts dead runs_started runs_succeeded runs_failed runs_canceled
     ${buckets('latency')} ${buckets('lag')}`,
  ),
  table('operator_facts', 'key', 'kind project_id at_ms example'),
  table(
    'operator_events',
    'kind project_id',
    'facts first_at_ms last_at_ms example quiet_until_ms reported_example due_at_ms',
  ),
  table('url_groups', 'project_id name', 'created_at_ms updated_at_ms', 'headers'),
  table('url_group_endpoints', 'project_id group_name position', 'url name'),
  table(
    'queues',
    'project_id id',
    'name parallelism paused next_position created_at_ms updated_at_ms deleted', //
  ),
  table(
    'flow_keys',
    'project_id key',
    `parallelism rate period_s parallelism_pinned rate_pinned paused window_started_at_ms window_count used_at_ms
     wake_at_ms`,
  ),
  table(
    'schedules',
    'key',
    `project_id id created_at_ms bytes version paused next_at_ms passed_until_ms last_at_ms last_message_key
     last_message_count error`,
  ),
  table(
    'schedule_plans',
    'key',
    'cron destination is_group method delay_ms caller_ip catch_up overlap kept',
    'header settings body',
  ),
  table('deduplications', 'project_id hash', 'message_id expires_at_ms'),
  table('invocations', 'run_key key', 'parent_key'),
  table('waiters', 'key', 'project_id run_key event_id deadline_ms'),
  table('ending_runs', 'key', 'project_id cancel_at_ms'),
  table('pending_events', 'key', 'project_id run_key event_id', 'body'),
  table(
    'runs',
    'key',
    `project_id id url created_at_ms state version entries journal_bytes completed_at_ms dead_key failure_key
     failure_state`,
    'config response',
  ),
  table('journal', 'run_key position', 'kind key entry_key at_ms'),
  table(
    'messages',
    'key',
    `project_id origin due_at_ms bytes retried claimed_at_ms claim_token worker wait_state cancel_requested_at_ms queue_id
     queue_position queue_permit flow_key run_key journal_position parkings`,
  ),
  table(
    'dead',
    'project_id failed_at_ms key',
    'retried response_status run_key',
    'response_header response_body', //
  ),
  table('logs', 'project_id at_ms seq', 'message_key state run_key response_status'),
  table('log_details', 'seq', 'at_ms error next_delivery_at_ms response_status', 'response_header response_body'),
  table(
    'contents',
    'key',
    `project_id id url origin path method created_at_ms not_before_ms caller_ip topic_name queue_name schedule_id
     flow_control_key labels replay_of`,
    'header settings body',
  ),
];

/** Tables that are not copied: the schema version, equal on both sides, and the workers of each database. */
export const UNCOPIED_TABLES: readonly string[] = ['migrations', 'workers'];

/** Columns that are not copied, because only PostgreSQL has them: the server that last updated the row. */
export const UNCOPIED_COLUMNS: Readonly<Record<string, string>> = { numbers: 'server' };

function table(name: string, key: string, others: string, large = ''): MovedTable {
  const keyColumns = words(key);
  const largeColumns = words(large);
  return { name, key: keyColumns, columns: [...keyColumns, ...words(others), ...largeColumns], large: largeColumns };
}

/** The columns of a histogram. */
function buckets(name: string): string {
  return Array.from({ length: 12 }, (_, index) => `${name}_${index}`).join(' ');
}

function words(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== '');
}
