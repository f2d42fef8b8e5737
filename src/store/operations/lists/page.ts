/** Helps to read a long list page by page: finds positions, ends a page by its rows and bytes, and reads its messages. */
import type { Message, MessageKey } from '../../../engine/model.ts';
import { decodeCursor, dlqIdOf } from '../../../protocol/cursor.ts';
import type { Queries, SqlParam } from '../../driver.ts';
import { CONTENT_FIELDS, type ContentRow } from '../messages/rows.ts';
import type { Conditions } from './filter.ts';

/** A position in a list that is ordered by time, then by a unique number. */
export interface Position {
  timeMs: number;
  n: number;
}

/** The requested part of a list, without the row at `after`. */
export interface Slice {
  after?: Position;
  order: 'latestFirst' | 'earliestFirst';
  count: number;
  /** Bytes at which the page ends early, so that a thousand large bodies are never in memory together. */
  bytesMax: number;
  fromMs?: number;
  toMs?: number;
}

/** Rows of a page. */
export interface PageRows<Row> {
  rows: Row[];
  /** Set if more rows match: the last row of the page. */
  next?: Position;
  /** Set if later rows were not examined: the last row of the window. */
  windowEnd?: Position;
}

/** The SQL conditions for the cursor and the time range of a slice, and the direction of its `order by`. */
export function sliceSql(
  slice: Slice,
  timeColumn: string,
  nColumn: string,
): Conditions & { direction: 'asc' | 'desc' } {
  const texts: string[] = [];
  const params: SqlParam[] = [];
  const latestFirst = slice.order === 'latestFirst';
  if (slice.after) {
    texts.push(`(${timeColumn}, ${nColumn}) ${latestFirst ? '<' : '>'} (?, ?)`);
    params.push(slice.after.timeMs, slice.after.n);
  }
  if (slice.fromMs !== undefined) {
    texts.push(`${timeColumn} >= ?`);
    params.push(slice.fromMs);
  }
  if (slice.toMs !== undefined) {
    texts.push(`${timeColumn} <= ?`);
    params.push(slice.toMs);
  }
  return { texts, params, direction: latestFirst ? 'desc' : 'asc' };
}

/** Cuts `rows` (up to `count + 1`, in list order) to a page. `windowEnd` is the last examined row if more rows follow. */
export function cutPage<Row extends Position>(
  rows: readonly Row[],
  count: number,
  windowEnd: Position | undefined,
): PageRows<Row> {
  const page = rows.slice(0, count);
  const last = page.at(-1);
  if (rows.length > count && last) return { rows: page, next: positionOf(last) };
  return windowEnd ? { rows: page, windowEnd } : { rows: page };
}

/** Selects the sizes of contents, with headers and settings, which may have more bytes than the body. */
export const CONTENT_SIZES =
  'select key, length(url) + coalesce(length(header), 0) + length(settings) + coalesce(length(body), 0) as bytes from contents where key in (??)';

const RESPONSE_BYTES = 'coalesce(length(response_header), 0) + coalesce(length(response_body), 0) as bytes';
export const DETAIL_SIZES = `select seq as key, ${RESPONSE_BYTES} from log_details where seq in (??)`;
export const DEAD_SIZES = `select key, ${RESPONSE_BYTES} from dead where key in (??)`;

/**
 * Ends the page before its messages and their responses exceed `bytesMax`, but keeps at least one row. Also returns the
 * bytes of the page. `responseSizes` is the statement `DETAIL_SIZES` or `DEAD_SIZES`, which takes the numbers of the
 * rows.
 */
export async function cutByBytes<Row extends Position & { message_key: number }>(
  queries: Queries,
  page: PageRows<Row>,
  responseSizes: string,
  bytesMax: number,
): Promise<PageRows<Row> & { bytes: number }> {
  const contents = await sizesOf(queries, CONTENT_SIZES, distinctKeys(page.rows));
  const responses = await sizesOf(
    queries,
    responseSizes,
    page.rows.map(({ n }) => n),
  );
  return cutBySizes(page, ({ message_key, n }) => (contents.get(message_key) ?? 0) + (responses.get(n) ?? 0), bytesMax);
}

/** The sizes that the statement `text` finds, by key. */
export async function sizesOf(queries: Queries, text: string, keys: readonly number[]): Promise<Map<number, number>> {
  const rows = await queries.query<{ key: number; bytes: number | null }>(text, [[...new Set(keys)]]);
  return new Map(rows.map(({ key, bytes }) => [key, bytes ?? 0]));
}

/** Ends the page before its rows exceed `bytesMax`, measured with `sizeOf`, but keeps at least one row. */
export function cutBySizes<Row extends Position>(
  page: PageRows<Row>,
  sizeOf: (row: Row) => number,
  bytesMax: number,
): PageRows<Row> & { bytes: number } {
  let bytes = 0;
  for (const [index, row] of page.rows.entries()) {
    const size = sizeOf(row);
    const before = page.rows[index - 1];
    if (bytes + size > bytesMax && before) {
      return { rows: page.rows.slice(0, index), next: positionOf(before), bytes };
    }
    bytes += size;
  }
  return { ...page, bytes };
}

/** The contents of the messages of a page. Bodies are read only here. */
export function contentsOf(queries: Queries, rows: readonly { message_key: number }[]): Promise<ContentRow[]> {
  return queries.query<ContentRow>(`select ${CONTENT_FIELDS} from contents c where c.key in (??)`, [
    distinctKeys(rows),
  ]);
}

function distinctKeys(rows: readonly { message_key: number }[]): number[] {
  return [...new Set(rows.map((row) => row.message_key))];
}

function positionOf({ timeMs, n }: Position): Position {
  return { timeMs, n };
}

/** The positions that DLQ ids name, without duplicates. */
export function positionsOfDlqIds(dlqIds: readonly string[]): Position[] {
  return [...new Set(dlqIds)].flatMap((dlqId) => positionOfDlqId(dlqId) ?? []);
}

/** The rows at `positions`, in the order of `positions`. */
export function inOrderOf<Row extends Position>(positions: readonly Position[], rows: readonly Row[]): Row[] {
  const rowByNumber = new Map(rows.map((row) => [row.n, row]));
  return positions.flatMap(({ n, timeMs }) => {
    const row = rowByNumber.get(n);
    return row?.timeMs === timeMs ? row : [];
  });
}

/**
 * The position that a DLQ id names. The id is the cursor of the entry; any other text, even another spelling of the same
 * numbers, names no entry.
 */
export function positionOfDlqId(dlqId: string): Position | undefined {
  const decoded = decodeCursor(dlqId);
  if (decoded?.n === undefined || dlqIdOf(decoded.ms, decoded.n) !== dlqId) return undefined;
  return { timeMs: decoded.ms, n: decoded.n };
}

/** The message with this key. Throws if the message was not read. */
export function messageOf(messageByKey: Map<MessageKey, Message>, key: MessageKey): Message {
  const message = messageByKey.get(key);
  if (!message) throw new Error(`message ${key} has no content`);
  return message;
}
