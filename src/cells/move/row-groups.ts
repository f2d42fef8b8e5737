/**
 * Divides the rows of a project into row groups, which a move copies. A row group is a set of rows of one table that are
 * adjacent in an index, and so have an order. Dependent rows in other tables are copied with their row, and the content
 * of a message is copied with every row that refers to it.
 */
import type { Queries, SqlValue } from '../../store/driver.ts';
import type { RowKey } from '../../store/move/chunks.ts';
import { MOVED_TABLES, type MovedTable } from '../../store/move/tables.ts';
import { WAIT_STATE } from '../../store/operations/lanes/wait-states.ts';
import { RUN_STATE } from '../../store/operations/runs/run-rows.ts';

export interface RowGroup {
  readonly table: MovedTable;
  /** SQL condition for the rows of the group; absent: all rows of the project. */
  readonly where?: string;
  /** Columns of an index that order the rows within the project. Their values are unique within the project. */
  readonly order: readonly string[];
  /** The column with the key of the content to which the row refers. */
  readonly content?: string;
  /** Tables with rows that belong to the rows of this group. */
  readonly dependents: readonly DependentTable[];
  /** SQL that computes the bytes of a row's dependents from columns of the row itself, where possible; absent: 0. */
  readonly bytes?: string;
  /**
   * SQL for a number that changes with the row. Only in groups that may have a million rows, most of which never change.
   * The numbers of each time range are added and compared, without reading rows. The first column of `order` must be a
   * time.
   */
  readonly digest?: string;
  /** Set if rows never change, and the time of a new row is close to the current time. Only in groups with a digest. */
  readonly isAppended?: true;
}

export interface DependentTable {
  readonly table: MovedTable;
  /** The column of `table` that refers to the owner. */
  readonly column: string;
  /** The column of the group's own table to which `column` refers. */
  readonly owner: string;
  readonly content?: string;
}

/** A range of times in a group with a digest; `toMs` is exclusive. */
export interface TimeRange {
  fromMs: number;
  toMs: number;
}

/** Digests of rows are less than this, so that the sum of ten million digests is a safe integer. */
const DIGEST_MODULUS = 100_000_007;

const DEPENDENTS_OF_RUN = [
  dependent('journal', 'run_key', 'key', 'key'),
  dependent('invocations', 'run_key', 'key'),
  dependent('pending_events', 'run_key', 'key'),
];
/** SQL for the bytes of a run's journal. */
const BYTES_OF_RUN = 'journal_bytes + entries * 200';

const MINUTE_COLUMNS = tableOf('minutes').columns.filter((name) => name !== 'project_id' && name !== 'at_ms');

/** Groups that may have a million rows or more, and are copied while the project is in use. */
export const HISTORY_GROUPS: readonly RowGroup[] = [
  rowGroup('logs', {
    order: ['at_ms', 'seq'],
    content: 'message_key',
    dependents: [dependent('log_details', 'seq', 'seq')],
    digest: `seq % ${DIGEST_MODULUS}`,
    isAppended: true,
  }),
  rowGroup('dead', {
    order: ['failed_at_ms', 'key'],
    content: 'key',
    digest: `key % ${DIGEST_MODULUS}`,
    isAppended: true,
  }),
  rowGroup('runs', {
    order: ['created_at_ms', 'key'],
    content: 'key',
    dependents: DEPENDENTS_OF_RUN,
    bytes: BYTES_OF_RUN,
    digest: `(key + state * 3 + version * 5 + entries * 7 + coalesce(completed_at_ms, 0) + coalesce(dead_key, 0) * 11
      + coalesce(failure_key, 0) * 13 + coalesce(failure_state, 0) * 17) % ${DIGEST_MODULUS}`,
  }),
  rowGroup('minutes', { order: ['at_ms'], digest: `(${MINUTE_COLUMNS.join(' + ')}) % ${DIGEST_MODULUS}` }),
];

/** Groups whose rows change all the time. These rows are copied again in the pause, when nothing changes. */
export const CURRENT_GROUPS: readonly RowGroup[] = [
  rowGroup('message_counts', { order: ['day'] }),
  rowGroup('url_groups', { order: ['name'] }),
  rowGroup('url_group_endpoints', { order: ['group_name', 'position'] }),
  rowGroup('queues', { order: ['id'] }),
  rowGroup('flow_keys', { order: ['key'] }),
  rowGroup('schedules', { order: ['id'], dependents: [dependent('schedule_plans', 'key', 'key')] }),
  rowGroup('deduplications', { order: ['hash'] }),
  rowGroup('ending_runs', { order: ['key'] }),
  rowGroup('waiters', { order: ['event_id', 'key'], content: 'key' }),
  // The dependents of a run may change while its row does not.
  rowGroup('runs', {
    where: `state = ${RUN_STATE.RUN_STARTED}`,
    order: ['id'],
    content: 'key',
    dependents: DEPENDENTS_OF_RUN,
    bytes: BYTES_OF_RUN,
  }),
  messages('claim_token is not null', 'key'),
  messages(`claim_token is null and wait_state = ${WAIT_STATE.due}`, 'due_at_ms', 'key'),
  messages(`claim_token is null and wait_state = ${WAIT_STATE.origin}`, 'origin', 'due_at_ms', 'key'),
  messages(`claim_token is null and wait_state = ${WAIT_STATE.flow}`, 'flow_key', 'due_at_ms', 'key'),
  messages(`claim_token is null and wait_state = ${WAIT_STATE.queue}`, 'queue_id', 'queue_position'),
  messages(`claim_token is null and wait_state = ${WAIT_STATE.project}`, 'due_at_ms', 'key'),
];

/** Tables that a move of a project does not copy: the tables of the directory, and the tables of the cell itself. */
export const OTHER_TABLES: readonly string[] = [
  ...['numbers', 'projects', 'cells', 'project_moves', 'tokens'],
  // Operator events are reported from the cell in which they occurred.
  ...['operator_facts', 'operator_events'],
];

function rowGroup(
  name: string,
  { dependents = [], ...rest }: Omit<RowGroup, 'table' | 'dependents'> & { dependents?: readonly DependentTable[] },
): RowGroup {
  return { table: tableOf(name), dependents, ...rest };
}

function messages(where: string, ...order: string[]): RowGroup {
  return rowGroup('messages', { where, order, content: 'key' });
}

function dependent(name: string, column: string, owner: string, content?: string): DependentTable {
  return { table: tableOf(name), column, owner, ...(content !== undefined && { content }) };
}

export function tableOf(name: string): MovedTable {
  const table = MOVED_TABLES.find((each) => each.name === name);
  if (table === undefined) throw new Error(`there is no table ${name} to move`);
  return table;
}

/** Selects rows of a group by a range of times, the key before the first row, and the last key. */
export interface RowRange {
  times?: TimeRange | undefined;
  after?: RowKey | undefined;
  upTo?: RowKey | undefined;
}

/** The condition for a range, with its parameters. */
export function rangeCondition(
  { where, order }: RowGroup,
  projectId: number,
  { times, after, upTo }: RowRange,
): { condition: string; params: SqlValue[] } {
  const [first] = order;
  const key = `(${order.join(', ')})`;
  const placeholders = `(${order.map(() => '?').join(', ')})`;
  const conditions = [
    'project_id = ?',
    ...(where === undefined ? [] : [where]),
    ...(times ? [`${first} >= ? and ${first} < ?`] : []),
    ...(after ? [`${key} > ${placeholders}`] : []),
    ...(upTo ? [`${key} <= ${placeholders}`] : []),
  ];
  const params = [projectId, ...(times ? [times.fromMs, times.toMs] : []), ...(after ?? []), ...(upTo ?? [])];
  return { condition: conditions.join(' and '), params };
}

export type Row = Record<string, SqlValue>;

export function valuesOf(row: Row, columns: readonly string[]): SqlValue[] {
  return columns.map((column) => {
    const value = row[column];
    if (value === undefined) throw new Error(`a row was read without its column ${column}`);
    return value;
  });
}

/** The distinct values of a key column, without null. */
export function keysOf(rows: readonly Row[], column: string): number[] {
  return [...new Set(rows.flatMap((row) => (row[column] == null ? [] : [row[column] as number])))];
}

export interface Digest {
  rows: number;
  sum: number;
}

/** The digest of all rows in a range of times, or of all rows of the group if the range is undefined. */
export async function digestOf(
  queries: Queries,
  group: RowGroup,
  projectId: number,
  times: TimeRange | undefined,
): Promise<Digest> {
  const { condition, params } = rangeCondition(group, projectId, { times });
  const [row] = await queries.query<Digest>(
    `select count(*) as rows, cast(coalesce(sum(${group.digest}), 0) as bigint) as sum from ${group.table.name} where ${condition}`,
    params,
  );
  return row ?? { rows: 0, sum: 0 };
}

/**
 * Divides the range into sections of `widthMs`. Returns the digest of each section by section number, without sections
 * that have no rows.
 */
export async function digestsOf(
  queries: Queries,
  group: RowGroup,
  projectId: number,
  { range: times, widthMs }: { range: TimeRange; widthMs: number },
): Promise<Map<number, Digest>> {
  const { condition, params } = rangeCondition(group, projectId, { times });
  const rows = await queries.query<Digest & { section: number }>(
    `select cast((${group.order[0]} - ?) / ? as bigint) as section, count(*) as rows,
       cast(coalesce(sum(${group.digest}), 0) as bigint) as sum
     from ${group.table.name} where ${condition} group by 1`,
    [times.fromMs, widthMs, ...params],
  );
  return new Map(rows.map(({ section, ...digest }) => [section, digest]));
}

/** The range of times of the group's rows. Returns undefined if the group has no rows. */
export async function timesOf(queries: Queries, group: RowGroup, projectId: number): Promise<TimeRange | undefined> {
  const [column] = group.order;
  const { condition, params } = rangeCondition(group, projectId, {});
  const [row] = await queries.query<{ first: number | null; last: number | null }>(
    `select min(${column}) as first, max(${column}) as last from ${group.table.name} where ${condition}`,
    params,
  );
  return row?.first == null || row.last === null ? undefined : { fromMs: row.first, toMs: row.last + 1 };
}
