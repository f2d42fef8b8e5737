/** What does an error of the client library or of the server mean for the caller? */
import pg from 'pg';
import { StoreFull, StoreUnavailable } from '../../../engine/store-errors.ts';
import { LockNotFree, StoreFatal } from '../../driver.ts';

// Classes and codes of https://www.postgresql.org/docs/current/errcodes-appendix.html.
const FATAL = new Set(['XX001', 'XX002']); // corrupted data, corrupted index
/** The server has ended the connection: it heard nothing within a transaction for too long. */
const IDLE = '25P03';
// Serialization failure, deadlock, a row that another transaction inserted after this one looked for it, a silent
// transaction.
const AGAIN = new Set(['40001', '40P01', '23505', IDLE]);
const FULL = '53100';
const INTERNAL = 'XX000';
/** A lock was not free in time. */
const LOCKED = '55P03';
const UNAVAILABLE_CLASSES = new Set([
  '08', // connection
  '40', // rolled back, not by us
  '53', // out of memory, disk, connections
  '57', // shut down, cancelled, still starting
  '58', // the operating system
]);
const UNAVAILABLE = new Set([
  '25006', // read only: a standby, or a primary that no longer is one
  IDLE,
  '25P04', // it took longer than the server allows any transaction
  '28000', // refused to log in, as while roles are changed
  '28P01',
  '3D000', // the database is being restored or renamed
]);

// A pooler mixes connections: a prepared statement belongs to another connection, or exists already.
const ELSEWHERE = new Set(['26000', '42P05']);

/** What Citus says, as an internal error, when its server is killed under it. */
const KILLED = /^postmaster was shut down/;

/** The server's code of `error`; undefined when it did not come from the server. */
function sqlStateOf(error: unknown): string | undefined {
  // Compared by class: some codes of the operating system, such as EPIPE, look like codes of the server.
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

/** Whether the transaction was rolled back because of another one, and may succeed if it is tried again. */
export function isConflict(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state !== undefined && AGAIN.has(state);
}

/** Whether the error only says that an earlier statement of the transaction has failed. */
export function isConsequence(error: unknown): boolean {
  return sqlStateOf(error) === '25P02';
}

/** Whether the server has ended the connection because this program was silent within a transaction. */
export function isIdleEnd(error: unknown): boolean {
  return sqlStateOf(error) === IDLE;
}

/** Whether the server has said what became of the statement: without an answer, a commit may have happened. */
export function isAnswer(error: unknown): boolean {
  const state = sqlStateOf(error);
  // A server that goes down says so, in class 57, while a commit may already be on disk.
  return state !== undefined && !state.startsWith('57') && !state.startsWith('08');
}

/** Says what an error means. Returns errors that are the command's own fault unchanged. */
export function classify(error: unknown): unknown {
  if (error instanceof StoreUnavailable || error instanceof StoreFatal) return error;
  const state = sqlStateOf(error);
  if (state === undefined) {
    // All errors of the client library itself are about the connection; the others are bugs in this program.
    return isOfConnection(error)
      ? new StoreUnavailable(`the database cannot be reached: ${reasonOf(error)}`, { cause: error })
      : error;
  }
  if (FATAL.has(state)) return new StoreFatal(`the database failed: ${reasonOf(error)}`, { cause: error });
  if (state === LOCKED) return new LockNotFree(`another worker has it locked: ${reasonOf(error)}`, { cause: error });
  if (ELSEWHERE.has(state)) {
    const reason = 'a pooler mixes up prepared statements: WAYPOST_DATABASE_PREPARE=false goes without';
    return new StoreUnavailable(`${reason} (${reasonOf(error)})`, { cause: error });
  }
  if (state === FULL) return new StoreFull(`the disk of the database is full: ${reasonOf(error)}`, { cause: error });
  if (state === INTERNAL && KILLED.test(reasonOf(error))) {
    return new StoreUnavailable(`the database was killed: ${reasonOf(error)}`, { cause: error });
  }
  if (UNAVAILABLE.has(state) || UNAVAILABLE_CLASSES.has(state.slice(0, 2))) {
    return new StoreUnavailable(`the database is not available (${state}): ${reasonOf(error)}`, { cause: error });
  }
  return error;
}

function isOfConnection(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError) return false;
  if ('code' in error && typeof error.code === 'string') return true; // ECONNREFUSED, ETIMEDOUT, ...
  return /connection|timeout|terminated|client (was|has)|calling end/i.test(error.message);
}

function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}
