/** Maps errors of the client library and SQLSTATEs of the server to the store's errors, by meaning for the caller. */
import pg from 'pg';
import { StoreFull, StoreUnavailable } from '../../../engine/store-errors.ts';
import { LockNotFree, StatementRefused, StoreFatal } from '../../driver.ts';

// Classes and codes of https://www.postgresql.org/docs/current/errcodes-appendix.html.
/** idle_in_transaction_session_timeout: the server has closed the connection. */
const IDLE_TIMEOUT = '25P03';
// Serialization failure, deadlock, unique violation (another transaction inserted the row after this transaction looked
// for it), idle transaction.
const CONFLICTS = new Set(['40001', '40P01', '23505', IDLE_TIMEOUT]);
const DISK_FULL = '53100';
/** A lock was not free in time. */
const LOCK_NOT_AVAILABLE = '55P03';
/**
 * Classes of errors that only a defect of this program causes. All other codes count as failures of the database, which
 * may be damaged, locked, moved or configured in ways that no list covers.
 */
const DEFECT_CLASSES = new Set([
  '21', // more rows than the statement allows
  '22', // a value that does not fit its type or its use
  '23', // a violated constraint
]);
const DEFECTS = new Set([
  '42601', // a syntax error, or another malformed statement, like all codes below
  '42701',
  '42702',
  '42703', // no such column, though the schema was verified when the store was opened
  '42712',
  '42725',
  '42803',
  '42804',
  '42P02',
  '42P08',
  '42P09',
  '42P18',
]);
/** A code in a class of defects, but caused by the encoding of the database. */
const ENCODING_MISMATCH = '22P05';

/** Explanations for the operator, in the log and at `/readyz`. Other errors show only their code. */
const MEANINGS = new Map([
  ['25006', 'it is read-only'],
  ['28000', 'it refuses the login'],
  ['28P01', 'it refuses the password'],
  ['3D000', 'it does not exist'],
  ['3F000', 'a schema is missing'],
  ['42501', 'a privilege is missing'],
  ['42P01', 'a table is missing'],
  ['53300', 'it has no connection left'],
  ['55000', 'it accepts no connections'],
  ['57P03', 'it is starting or shutting down'],
  ['XX001', 'its data is corrupted'],
  ['XX002', 'an index is corrupted'],
]);
/** Classes of errors that would fail every command, so commands are not retried one by one. */
const OUTAGE_CLASSES = new Set([
  '08', // connection
  '25', // the state of the transaction
  '28', // the login
  '3D', // the database
  '3F', // the schema
  '40', // rolled back by the server
  '42', // tables, privileges, functions
  '53', // out of memory, disk, connections
  '55', // accepts no connections
  '57', // shut down, cancelled, still starting
  '58', // the operating system
]);

// A pooler switched connections: the new connection does not have a prepared statement, or already has it.
const PREPARED_STATEMENT_CONFLICTS = new Set(['26000', '42P05']);

/** The SQLSTATE of `error`; undefined when the error did not come from the server. */
function sqlStateOf(error: unknown): string | undefined {
  // Tests the class, because some codes of the operating system, such as EPIPE, look like an SQLSTATE.
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

/** Whether the transaction was rolled back because of a conflict with another one. A retry may succeed. */
export function isConflict(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state !== undefined && CONFLICTS.has(state);
}

/** Whether the error only reports that an earlier statement of the transaction failed. */
export function isConsequence(error: unknown): boolean {
  return sqlStateOf(error) === '25P02';
}

/** Whether the server closed the connection because this process sent no statement within a transaction. */
export function isIdleTimeout(error: unknown): boolean {
  return sqlStateOf(error) === IDLE_TIMEOUT;
}

/** Whether the server has reported that the statement failed. Otherwise a commit may have succeeded. */
export function isReportedFailure(error: unknown): boolean {
  const state = sqlStateOf(error);
  // A server that shuts down reports class 57, but the commit may already be on disk.
  return state !== undefined && !state.startsWith('57') && !state.startsWith('08');
}

/** Returns the store error for a database error. Returns defects of this program unchanged. */
export function classify(error: unknown): unknown {
  if (error instanceof StoreUnavailable || error instanceof StoreFatal) return error;
  const state = sqlStateOf(error);
  const options = { cause: error, detail: detailOf(error) };
  if (state === undefined) {
    // Errors of the client library itself concern the connection; all other errors are defects of this program.
    return isConnectionError(error) ? new StoreUnavailable('the database cannot be reached', options) : error;
  }
  if (isDefect(state)) return error;
  if (state === LOCK_NOT_AVAILABLE) return new LockNotFree('another worker has it locked', options);
  if (state === DISK_FULL) return new StoreFull('the disk of the database is full', options);
  if (PREPARED_STATEMENT_CONFLICTS.has(state)) {
    const reason = 'a pooler mixes up prepared statements: set WAYPOST_DATABASE_PREPARE=false to disable them';
    return new StoreUnavailable(reason, options);
  }
  const meaning = MEANINGS.get(state);
  const reason = `the database is not available (${meaning === undefined ? '' : `${meaning}, `}SQLSTATE ${state})`;
  return OUTAGE_CLASSES.has(classOf(state))
    ? new StoreUnavailable(reason, options)
    : new StatementRefused(reason, options);
}

function isDefect(state: string): boolean {
  return DEFECTS.has(state) || (DEFECT_CLASSES.has(classOf(state)) && state !== ENCODING_MISMATCH);
}

function classOf(state: string): string {
  return state.slice(0, 2);
}

function isConnectionError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError) return false;
  if ('code' in error && typeof error.code === 'string') return true; // ECONNREFUSED, ETIMEDOUT, ...
  return /connection|timeout|terminated|client (was|has)|calling end/i.test(error.message);
}

function detailOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(detailOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}
