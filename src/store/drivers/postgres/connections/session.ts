/**
 * Builds the statements that begin a transaction. These statements pin the settings of the transaction, and name the
 * transaction on the server that executes it. With Citus, the rows may be on another server than the connected one, and
 * the two servers do not share settings or transaction ids.
 *
 * Every setting lasts for one transaction. A pooler in transaction mode may run each transaction in another session: the
 * pooler refuses or ignores start parameters, and a `set` would be lost, or leak to other programs
 * (docs/decisions/045-each-transaction-pins-its-settings.md).
 */
import type pg from 'pg';
import type { Connections } from './connections.ts';

/** Identifies a transaction, so that its outcome can be queried later. */
export interface TransactionName {
  xid: string;
  /** The start time of the server that assigned the id. */
  server: string;
}

/** The statements of a session that differ between servers. */
export interface Session {
  /** Sent after `begin`; `$1` is the lock timeout in ms. If `isNamed`, the last statement returns a `TransactionName`. */
  begin: readonly string[];
  beginRead: readonly string[];
  /** Queries the outcome of transaction `$1` of server `$2`. */
  statusQuery: string;
  /** Returns `now`: the current Unix time in milliseconds. */
  clock: string;
  /** A condition that is always true, and makes Citus run a bulk insert on the node of the rows. */
  insertCondition?: string;
  /** Whether the rows are on a node of Citus. */
  isRouted: boolean;
  /** Whether `begin` names the transaction. */
  isNamed: boolean;
}

/**
 * Each statement of the store has an index, and must use that index even right after a burst, when the planner's
 * statistics are outdated: they may show a table as empty, and the planner would then scan the whole table.
 */
const PLANNER_SETTINGS: Readonly<Record<string, string>> = {
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_sort: 'off',
  // In a join, the table with few rows is written first (lookups.ts).
  join_collapse_limit: '1',
  jit: 'off',
};

/** P1: commits must be durable, so `off` becomes `on`. Other values are kept. */
const SET_SYNCHRONOUS_COMMIT = `set_config('synchronous_commit', case current_setting('synchronous_commit')
  when 'off' then 'on' else current_setting('synchronous_commit') end, true)`;

/**
 * Settings that change how the server parses a statement or formats a value. A database, a role or a pooler may have
 * other defaults.
 */
const PINNED_SETTINGS: Readonly<Record<string, string>> = {
  client_encoding: 'UTF8',
  standard_conforming_strings: 'on',
  bytea_output: 'hex',
  DateStyle: 'ISO, MDY',
  IntervalStyle: 'postgres',
  TimeZone: 'UTC',
  extra_float_digits: '1',
  quote_all_identifiers: 'off',
  // P1: a warning reports a commit that is on the server's disk but not on a synchronous standby.
  client_min_messages: 'warning',
};

const SET_LOCK_TIMEOUT = `set_config('lock_timeout', $1, true)`;

/**
 * A row that each store has, and that never changes. Citus sends a statement that names the table `migrations` to the
 * node of the store's rows, and evaluates the functions in the select list there.
 */
const FROM_ROW_NODE = 'from migrations where number = 1';

/** Identifies one start of a server by a number, which does not depend on the time zone that a transaction sets. */
const SERVER = 'extract(epoch from pg_postmaster_start_time())::text';

/** PostgreSQL's number of the lock mode `ShareLock`. */
const SHARE_LOCK = 5;

const CLOCK = 'select cast(floor(extract(epoch from clock_timestamp()) * 1000) as bigint) as now';

/**
 * The location of the store's rows. `uninitialized`: on Citus, before the schema or the first migration. `shardId`:
 * Citus's id of the shard of the store's first table.
 */
type RowLocation = ({ kind: 'here' } | { kind: 'routed'; shardId: number } | { kind: 'uninitialized' }) & {
  schema: string;
};

interface SchemaRow {
  schema: string;
  hasTransactionTimeout: number;
  citus: number;
}

const DEFAULT_SCHEMA = 'public';

/** Resets the search path: a pooler may hand over a session in which another program has changed the search path. */
const RESET_SEARCH_PATH = `set_config('search_path', reset_val, true) from pg_settings where name = 'search_path'`;

/**
 * Finds the schema of the store: `$1`, or if `$1` is empty, the first schema of the search path, unless only the default
 * schema has a store. A changed search path would otherwise hide that store, and an empty store would be created
 * elsewhere.
 */
const FIND_SCHEMA = `select case
    when $1 <> '' then $1
    when to_regclass(quote_ident(at.first) || '.migrations') is not null then at.first
    when to_regclass('${DEFAULT_SCHEMA}.migrations') is not null or at.first is null then '${DEFAULT_SCHEMA}'
    else at.first end as schema,
  exists (select 1 from pg_settings where name = 'transaction_timeout') as "hasTransactionTimeout",
  to_regclass('pg_catalog.pg_dist_schema') is not null as citus
  from (select nullif(current_schema()::text, 'pg_catalog') as first) at`;

/**
 * Queries the server, and returns the statements for its sessions. `schema` contains the tables; if undefined, it is
 * found by `FIND_SCHEMA`. `idleMaxMs`: the server ends a write transaction that receives no statement for this long.
 */
export async function detectSession(
  connections: Connections,
  client: pg.ClientBase,
  idleMaxMs: number,
  schema?: string,
): Promise<Session> {
  const { statementTimeoutMs } = connections;
  const query = async <Row extends object>(text: string, values: string[] = []): Promise<Row | undefined> =>
    (await connections.sendNative<Row>(client, text, values)).rows[0];
  const settings = setConfigs({
    ...PINNED_SETTINGS,
    ...timeouts(statementTimeoutMs, statementTimeoutMs),
    lock_timeout: '0',
  });
  connections.cork(client); // the server's default timeouts could end the transaction before its settings arrive
  const sent = [
    client.query('begin isolation level read committed'),
    ...[settings, RESET_SEARCH_PATH].map((text) => query(`select ${text}`)),
  ];
  connections.uncork(client);
  await Promise.all(sent);
  const row = await query<SchemaRow>(FIND_SCHEMA, [schema ?? '']);
  if (!row) throw new Error('the database did not return its schema');
  const rowLocation = await locateRows(row, query);
  await client.query('commit');
  return sessionFor(rowLocation, row.hasTransactionTimeout === 1, statementTimeoutMs, idleMaxMs);
}

type QueryRow = <Row extends object>(text: string, values?: string[]) => Promise<Row | undefined>;

async function locateRows({ schema, citus }: SchemaRow, query: QueryRow): Promise<RowLocation> {
  if (citus !== 1) return { kind: 'here', schema };
  const row = await query<{ hasNamespace: number; routed: number; shardId: number | null }>(
    `select to_regnamespace(at.name) is not null as "hasNamespace",
       exists (select 1 from pg_dist_schema where schemaid = to_regnamespace(at.name)) as routed,
       (select shardid from pg_dist_shard where logicalrelid = to_regclass(at.name || '.migrations')) as "shardId"
     from (select quote_ident($1) as name) at`,
    [schema],
  );
  if (row?.hasNamespace === 1 && row.routed !== 1) return { kind: 'here', schema };
  const shardId = row?.shardId ?? null;
  return shardId === null ? { kind: 'uninitialized', schema } : { kind: 'routed', shardId, schema };
}

/**
 * While Citus moves the tables to another node, a row lock on the old node has no effect on the new one. So a write
 * transaction takes the lock that Citus itself takes before a write, and keeps this lock until the transaction ends: the
 * move waits for the transaction, and later transactions wait for the move. The move locks the first table before it
 * takes any other lock.
 */
function shardLock(id: number): string {
  return `lock_shard_metadata(${SHARE_LOCK}, array[${id}])`;
}

function sessionFor(
  rowLocation: RowLocation,
  hasTransactionTimeout: boolean,
  statementTimeoutMs: number,
  idleMaxMs: number,
): Session {
  const pinned: Record<string, string> = {
    ...PINNED_SETTINGS,
    // Off, because this timeout would also end a migration. The timeouts below end a transaction that hangs.
    ...(hasTransactionTimeout && { transaction_timeout: '0' }),
    search_path: quoted(rowLocation.schema),
  };
  const writing = { ...pinned, ...timeouts(statementTimeoutMs, idleMaxMs) };
  const reading = { ...pinned, ...timeouts(statementTimeoutMs, statementTimeoutMs), lock_timeout: '0' };
  const forWrites = `${SET_SYNCHRONOUS_COMMIT}, ${SET_LOCK_TIMEOUT}`;
  const named = `select pg_current_xact_id()::text as xid, ${SERVER} as server, ${forWrites}`;
  if (rowLocation.kind === 'here') {
    const plans = { ...PLANNER_SETTINGS, plan_cache_mode: 'force_generic_plan' };
    return {
      begin: [`${named}, ${setConfigs({ ...writing, ...plans })}`],
      beginRead: [`select ${setConfigs({ ...reading, ...plans })}`],
      statusQuery: statusQueryWith(writing),
      clock: CLOCK,
      isRouted: false,
      isNamed: true,
    };
  }
  // Disables generic plans: Citus cannot make one for most statements, since the node depends on the statement's values.
  const uninitialized: Session = {
    begin: [`select ${forWrites}, ${setConfigs(writing)}`],
    beginRead: [`select ${setConfigs(reading)}`],
    statusQuery: `${statusQueryWith(writing)} ${FROM_ROW_NODE}`,
    clock: CLOCK,
    isRouted: true,
    isNamed: false,
  };
  if (rowLocation.kind === 'uninitialized') return uninitialized;
  const onRowNode = `${named}, ${setConfigs({ ...nodeSettings(writing), ...PLANNER_SETTINGS })} ${FROM_ROW_NODE}`;
  return {
    ...uninitialized,
    begin: [...uninitialized.begin.map((begin) => `${begin}, ${shardLock(rowLocation.shardId)}`), onRowNode],
    beginRead: [
      ...uninitialized.beginRead,
      `select ${setConfigs({ ...nodeSettings(reading), ...PLANNER_SETTINGS })} ${FROM_ROW_NODE}`,
    ],
    clock: `${CLOCK} ${FROM_ROW_NODE}`,
    insertCondition: `exists (select 1 ${FROM_ROW_NODE})`,
    isNamed: true,
  };
}

/** `tcp_user_timeout` covers a process that stops or is cut off while it receives a result; the other timeouts do not. */
function timeouts(statementTimeoutMs: number, idleMs: number): Record<string, string> {
  return {
    statement_timeout: String(statementTimeoutMs),
    idle_in_transaction_session_timeout: String(idleMs),
    tcp_user_timeout: String(statementTimeoutMs),
  };
}

/** Removes two settings: Citus chooses the encoding of its own connections, and qualifies the tables in statements. */
function nodeSettings({ client_encoding, search_path, ...others }: Record<string, string>): Record<string, string> {
  return others;
}

function quoted(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`;
}

/** Select-list expressions that set each value until the end of the transaction. */
function setConfigs(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([name, value]) => `set_config('${name}', '${value.replaceAll("'", "''")}', true)`)
    .join(', ');
}

/**
 * Emits a message that nothing reads. The message makes this a write transaction, so its commit waits until all earlier
 * commits are durable too, also on synchronous standbys.
 */
function statusQueryWith(settings: Readonly<Record<string, string>>): string {
  return `select ${SERVER} = $2 as same, case when ${SERVER} = $2 then pg_xact_status(cast($1 as text)::xid8) end as status,
  pg_logical_emit_message(true, 'waypost', ''), ${setConfigs(settings)}`;
}
