/**
 * What is a server told when a transaction begins, and which server is asked: the one that this program is connected to,
 * or the one that has the rows? With Citus they may be two, and a setting or a transaction id of one says nothing of the
 * other.
 */
import type pg from 'pg';
import type { Connections } from './connections.ts';
import { SERVER } from './numbers.ts';

/** How the server names a transaction that has begun. */
export interface TransactionName {
  xid: string;
  /** The start of the server that gave the id. */
  server: string;
}

/** The statements of a session that differ between servers. */
export interface Session {
  /** Sent when a transaction begins; `$1` is the longest wait for a lock. The last one answers a `TransactionName`. */
  begin: readonly string[];
  beginRead: readonly string[];
  /** What became of transaction `$1` of the server `$2`? */
  lookUp: string;
  /** `now`: Unix time in milliseconds, at this moment. */
  clock: string;
  /** Holds always; where it is part of an insert of many rows, that is done where the rows go. */
  insertsIf?: string;
  /** The rows are on a node of Citus. */
  isRouted: boolean;
  /** Whether `begin` names the transaction. */
  isNamed: boolean;
}

export interface SessionOptions {
  /** Where the tables are; undefined: where the server looks for them. */
  schema?: string;
  statementTimeoutMs: number;
  /** A transaction that writes hears nothing from this program for this long. */
  mayIdleMs: number;
}

/**
 * Each of the store's statements has an index made for it. It must use that index right after a burst too, when the
 * planner's statistics are outdated: they may call a table empty, and the planner would then read all of it.
 */
const PLANNER: Readonly<Record<string, string>> = {
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_sort: 'off',
  // In a join, the table with few rows is written first (lookups.ts).
  join_collapse_limit: '1',
  jit: 'off',
};

/** P1: commits must be durable, so `off` becomes `on`. A setting stricter than `on` stays as it is. */
const SYNCHRONOUS = `set_config('synchronous_commit', case current_setting('synchronous_commit')
  when 'off' then 'on' else current_setting('synchronous_commit') end, true)`;

/** P1: a commit that is on one disk only is told of with a warning. */
const WARNINGS = `set_config('client_min_messages', 'warning', true)`;

const LOCK_TIMEOUT = `set_config('lock_timeout', $1, true)`;

/**
 * A row that each store has, and that never changes. Citus sends a statement that names its table to the node that has
 * it, and the functions in its list of columns are computed there.
 */
const AT_THE_ROWS = 'from migrations where number = 1';

/** Sessions of several nodes may have several time zones. */
const SERVER_OF_ROWS = 'extract(epoch from pg_postmaster_start_time())::text';

/** The number that PostgreSQL has for this mode. */
const SHARE_LOCK = 5;

const CLOCK = 'select cast(floor(extract(epoch from clock_timestamp()) * 1000) as bigint) as now';

/**
 * What is known of the database that a URL leads to. `unborn`: on Citus, before the schema or the first migration. `gateId`: the number
 * that Citus has for the first of the store's tables.
 */
type Place = { kind: 'here' } | { kind: 'routed'; gateId: number } | { kind: 'unborn' };

export async function askSession(
  connections: Connections,
  client: pg.ClientBase,
  options: SessionOptions,
): Promise<Session> {
  return sessionAt(await findPlace(connections, client, options), options);
}

async function findPlace(connections: Connections, client: pg.ClientBase, { schema }: SessionOptions): Promise<Place> {
  const ask = async (text: string, values: string[] = []): Promise<Record<string, number | null>> =>
    (await connections.sendOwn<Record<string, number | null>>(client, text, values)).rows[0] ?? {};
  const { citus } = await ask(`select to_regclass('pg_catalog.pg_dist_schema') is not null as citus`);
  if (citus !== 1) return { kind: 'here' };
  const {
    isThere,
    routed,
    gateId = null,
  } = await ask(
    `select to_regnamespace(at.name) is not null as "isThere",
       exists (select 1 from pg_dist_schema where schemaid = to_regnamespace(at.name)) as routed,
       (select shardid from pg_dist_shard where logicalrelid = to_regclass(at.name || '.migrations')) as "gateId"
     from (select quote_ident(coalesce(nullif($1, ''), current_schema())) as name) at`,
    [schema ?? ''],
  );
  if (isThere === 1 && routed !== 1) return { kind: 'here' };
  return gateId === null ? { kind: 'unborn' } : { kind: 'routed', gateId };
}

/**
 * While Citus moves the tables to another node, a lock of a row on the old one keeps nobody out on the new one. So a
 * transaction that writes takes what Citus itself takes before a write, from its beginning to its end: the mover waits for
 * it, and what begins later waits for the mover. The mover asks for the first table first, and has no other by then.
 */
function gateAt(id: number): string {
  return `lock_shard_metadata(${SHARE_LOCK}, array[${id}])`;
}

function sessionAt(place: Place, { schema, statementTimeoutMs, mayIdleMs }: SessionOptions): Session {
  const path = schema === undefined ? {} : { search_path: `"${schema}"` };
  // The last limit is for a program that is stopped or cut off while an answer is sent to it: no other limit ends that.
  const limits = (idleMs: number) => ({
    statement_timeout: String(statementTimeoutMs),
    idle_in_transaction_session_timeout: String(idleMs),
    tcp_user_timeout: String(statementTimeoutMs),
  });
  const [writing, reading] = [limits(mayIdleMs), limits(statementTimeoutMs)];
  const forWrites = `${SYNCHRONOUS}, ${WARNINGS}, ${LOCK_TIMEOUT}`;
  const named = (server: string) => `select pg_current_xact_id()::text as xid, ${server} as server, ${forWrites}`;
  if (place.kind === 'here') {
    const plans = { ...path, ...PLANNER, plan_cache_mode: 'force_generic_plan' };
    return {
      begin: [`${named(SERVER)}, ${setting({ ...writing, ...plans })}`],
      beginRead: [`select ${setting({ ...reading, ...plans })}`],
      lookUp: lookUpAt(SERVER),
      clock: CLOCK,
      isRouted: false,
      isNamed: true,
    };
  }
  // No generic plans: Citus has none for most statements, since it must know the values to find the node.
  const unborn: Session = {
    begin: [`select ${forWrites}, ${setting({ ...writing, ...path })}`],
    beginRead: [`select ${setting({ ...reading, ...path })}`],
    lookUp: `${lookUpAt(SERVER_OF_ROWS)} ${AT_THE_ROWS}`,
    clock: CLOCK,
    isRouted: true,
    isNamed: false,
  };
  if (place.kind === 'unborn') return unborn;
  const atTheRows = `${named(SERVER_OF_ROWS)}, ${setting({ ...writing, ...PLANNER })} ${AT_THE_ROWS}`;
  return {
    ...unborn,
    begin: [...unborn.begin.map((begin) => `${begin}, ${gateAt(place.gateId)}`), atTheRows],
    beginRead: [...unborn.beginRead, `select ${setting({ ...reading, ...PLANNER })} ${AT_THE_ROWS}`],
    clock: `${CLOCK} ${AT_THE_ROWS}`,
    insertsIf: `exists (select 1 ${AT_THE_ROWS})`,
    isNamed: true,
  };
}

/** Sets each until the end of the transaction. */
function setting(values: Readonly<Record<string, string>>): string {
  return Object.entries(values)
    .map(([name, value]) => `set_config('${name}', '${value}', true)`)
    .join(', ');
}

/**
 * No one reads the message that this emits. It makes this a transaction that writes, so its commit waits until
 * everything before it is as durable as commits must be, on synchronous standbys too.
 */
function lookUpAt(server: string): string {
  return `select ${server} = $2 as same, case when ${server} = $2 then pg_xact_status(cast($1 as text)::xid8) end as status,
  pg_logical_emit_message(true, 'waypost', ''), ${WARNINGS}`;
}
