/** Classifies errors of the client library and of the server by their meaning for the caller. */
import pg from 'pg';
import { StoreFull, StoreUnavailable } from '../../../engine/store-errors.ts';
import { LockNotFree, StatementRefused, StoreFatal } from '../../driver.ts';

// Classes and codes of https://www.postgresql.org/docs/current/errcodes-appendix.html.
/** The server has ended the connection: it heard nothing within a transaction for too long. */
const IDLE = '25P03';
// Serialization failure, deadlock, a row that another transaction inserted after this one looked for it, a silent
// transaction.
const RETRIED = new Set(['40001', '40P01', '23505', IDLE]);
const FULL = '53100';
/** A lock was not free in time. */
const LOCKED = '55P03';
/**
 * Defects of this program, which a correct program causes in no state of the database. All other codes are failures of the
 * database: it may be damaged, locked, moved or configured in ways that nobody has listed.
 */
const DEFECT_CLASSES = new Set([
  '21', // more rows than the statement allows
  '22', // a value that cannot be what it is used as
  '23', // a violated constraint
]);
const DEFECTS = new Set([
  '42601', // malformed, as are those below
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
/** In classes of defects, but due to the encoding that the database was made with. */
const OF_ENCODING = '22P05';

/** What the operator reads in the log and at `/readyz`. Others are named by their code alone. */
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
/** Classes of errors that every command would get: retrying single commands is useless. */
const NOT_OF_ONE_COMMAND = new Set([
  '08', // connection
  '25', // the state of the transaction
  '28', // the login
  '3D', // the database
  '3F', // the schema
  '40', // rolled back, not by us
  '42', // tables, privileges, functions
  '53', // out of memory, disk, connections
  '55', // accepts no connections
  '57', // shut down, cancelled, still starting
  '58', // the operating system
]);

// A pooler mixes connections: a prepared statement belongs to another connection, or exists already.
const MIXED_UP = new Set(['26000', '42P05']);

/** The server's code of `error`; undefined when it did not come from the server. */
function sqlStateOf(error: unknown): string | undefined {
  // Compared by class: some codes of the operating system, such as EPIPE, look like codes of the server.
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

/** Whether the transaction was rolled back because of another one, and may succeed if it is tried again. */
export function isConflict(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state !== undefined && RETRIED.has(state);
}

/** Whether the error only says that an earlier statement of the transaction has failed. */
export function isConsequence(error: unknown): boolean {
  return sqlStateOf(error) === '25P02';
}

/** Whether the server has ended the connection because this program was silent within a transaction. */
export function isIdleEnd(error: unknown): boolean {
  return sqlStateOf(error) === IDLE;
}

/** Whether the server has reported the outcome of the statement. Otherwise a commit may have happened. */
export function isAnswer(error: unknown): boolean {
  const state = sqlStateOf(error);
  // A server that goes down says so, in class 57, while a commit may already be on disk.
  return state !== undefined && !state.startsWith('57') && !state.startsWith('08');
}

/** Says what an error means. Returns defects of this program unchanged. */
export function classify(error: unknown): unknown {
  if (error instanceof StoreUnavailable || error instanceof StoreFatal) return error;
  const state = sqlStateOf(error);
  const options = { cause: error, detail: detailOf(error) };
  if (state === undefined) {
    // All errors of the client library itself are about the connection; the others are defects of this program.
    return isOfConnection(error) ? new StoreUnavailable('the database cannot be reached', options) : error;
  }
  if (isDefect(state)) return error;
  if (state === LOCKED) return new LockNotFree('another worker has it locked', options);
  if (state === FULL) return new StoreFull('the disk of the database is full', options);
  if (MIXED_UP.has(state)) {
    const reason = 'a pooler mixes up prepared statements: WAYPOST_DATABASE_PREPARE=false goes without';
    return new StoreUnavailable(reason, options);
  }
  const meaning = MEANINGS.get(state);
  const reason = `the database is not available (${meaning === undefined ? '' : `${meaning}, `}SQLSTATE ${state})`;
  return NOT_OF_ONE_COMMAND.has(classOf(state))
    ? new StoreUnavailable(reason, options)
    : new StatementRefused(reason, options);
}

function isDefect(state: string): boolean {
  return DEFECTS.has(state) || (DEFECT_CLASSES.has(classOf(state)) && state !== OF_ENCODING);
}

function classOf(state: string): string {
  return state.slice(0, 2);
}

function isOfConnection(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError) return false;
  if ('code' in error && typeof error.code === 'string') return true; // ECONNREFUSED, ETIMEDOUT, ...
  return /connection|timeout|terminated|client (was|has)|calling end/i.test(error.message);
}

function detailOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(detailOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}
