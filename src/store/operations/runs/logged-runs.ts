/** Reads the data of runs that logs show besides journals: state, invokers and results. */
import type { Queries } from '../../driver.ts';

export interface LoggedRunRow {
  key: number;
  id: string;
  url: string;
  created_at_ms: number;
  state: number;
  config: string;
  completed_at_ms: number | null;
  caller_ip: string | null;
  failure_key: number | null;
  failure_state: number | null;
  /** The time and the key of the run's DLQ entry; null if the run has no entry, or no longer has one. */
  failed_at_ms: number | null;
  dead_key: number | null;
}

export function readLoggedRuns(queries: Queries, keys: readonly number[]): Promise<LoggedRunRow[]> {
  return queries.query<LoggedRunRow>(
    `select r.key, r.id, r.url, r.created_at_ms, r.state, r.config, r.completed_at_ms, c.caller_ip,
       r.failure_key, r.failure_state, d.failed_at_ms, d.key as dead_key
     from runs r left lookup contents c on (c.key = r.key) left lookup dead d on (d.key = r.dead_key)
     where r.key in (??)`,
    [keys],
  );
}

export interface InvokerRow {
  run_key: number;
  id: string;
  url: string;
  created_at_ms: number;
}

/** The runs that wait or waited for the runs `keys`, by the start of the wait. The first for a key is its invoker. */
export function invokersOf(queries: Queries, keys: readonly number[]): Promise<InvokerRow[]> {
  return queries.query<InvokerRow>(
    `select i.run_key, p.id, p.url, p.created_at_ms from invocations i lookup runs p on (p.key = i.parent_key)
     where i.run_key in (??) order by i.run_key, i.key`,
    [keys],
  );
}

export interface ResponseRow {
  key: number;
  response: Uint8Array | null;
}

/** The results of runs. With `bytesMax`, each result is cut to one byte more, which shows that it was longer. */
export function responsesOf(queries: Queries, keys: readonly number[], bytesMax?: number): Promise<ResponseRow[]> {
  return bytesMax === undefined
    ? queries.query<ResponseRow>('select key, response from runs where key in (??)', [keys])
    : queries.query<ResponseRow>(
        `select key, case when ${showsAll('config')} then substr(response, 1, ?) else response end as response
         from runs where key in (??)`,
        [bytesMax + 1, keys],
      );
}

/**
 * Whether the settings in `column` redact nothing, in SQL. Redacted text is shown as a hash of the whole text and is
 * never cut before hashing: hashes of prefixes would let a reader guess the text byte by byte.
 */
export function showsAll(column: string): string {
  return `replace(${column}, '"redact"', '') = ${column}`;
}

/** The rows, in their order, that fit into `bytesMax` bytes together. Rows that do not fit are skipped. */
export function rowsWithinBytes<Row extends { bytes: number | null }>(rows: readonly Row[], bytesMax: number): Row[] {
  let bytes = 0;
  return rows.filter((row) => {
    const size = row.bytes ?? 0;
    if (bytes + size > bytesMax) return false;
    bytes += size;
    return true;
  });
}
