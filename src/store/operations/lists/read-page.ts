/** Reads one page of a list from several windows, and decodes the ids and cursors of a request. */

import type { Page, PageRequest } from '../../../engine/lists/page.ts';
import type { InProject, MessageId, MessageKey, Millis, ProjectId } from '../../../engine/model.ts';
import { decodeCursor, encodeCursor } from '../../../protocol/cursor.ts';
import { ApiError } from '../../../protocol/errors.ts';
import { keyOfMessageId } from '../../../protocol/ids.ts';
import type { Pause } from '../operation.ts';
import type { PageRows, Position, Slice } from './page.ts';

/**
 * The maximum number of windows that are searched for the rows of one page, so that a page takes at most a tenth of a
 * second. A window has `WINDOW` rows (windows.ts).
 */
const WINDOWS_MAX = 3;

/** The bytes at which a page ends early, so that a thousand large bodies are never in memory together. */
const PAGE_BYTES_MAX = 16 * 1024 * 1024;

/**
 * How many messages are encoded, or rows decoded, before other work may run. If each has hundreds of headers, this takes
 * a few milliseconds.
 */
export const BATCH_SIZE = 32;

/** Encodes or decodes items in batches, and lets other work run between them. */
export async function mapInBatches<From, To>(
  items: readonly From[],
  make: (item: From) => To,
  pause: Pause,
): Promise<To[]> {
  const made: To[] = [];
  for (const item of items) {
    made.push(make(item));
    if (made.length % BATCH_SIZE === 0) await pause();
  }
  return made;
}

/** Reads windows until the page is full or the list ends. After `windowsMax` windows, the page is returned short. */
export async function readPage<T>(
  times: { fromMs?: Millis; toMs?: Millis },
  { cursor, count, order, bytesMax = PAGE_BYTES_MAX }: PageRequest,
  readWindow: (
    slice: Slice,
    window: number,
  ) => Promise<Omit<PageRows<unknown>, 'rows'> & { items: T[]; bytes: number }>,
  windowsMax = WINDOWS_MAX,
): Promise<Page<T>> {
  const items: T[] = [];
  let after = cursor === undefined ? undefined : positionOfCursor(cursor, order);
  let bytesLeft = bytesMax;
  for (let window = 0; window < windowsMax && items.length < count && bytesLeft > 0; window++) {
    const slice: Slice = { order, count: count - items.length, bytesMax: bytesLeft };
    if (after) slice.after = after;
    if (times.fromMs !== undefined) slice.fromMs = times.fromMs;
    if (times.toMs !== undefined) slice.toMs = times.toMs;
    const read = await readWindow(slice, window);
    items.push(...read.items);
    bytesLeft -= read.bytes;
    after = read.next ?? read.windowEnd;
    if (!after) return { items };
    if (read.next) break;
  }
  return after ? { items, cursor: encodeCursor(after.timeMs, after.n) } : { items };
}

/** The position before the first row of the page. A cursor without a number includes all rows of its millisecond. */
function positionOfCursor(cursor: string, order: PageRequest['order']): Position {
  const decoded = decodeCursor(cursor);
  if (!decoded)
    throw new ApiError('invalid_query', `invalid query parameter cursor: ${JSON.stringify(cursor)} is not a cursor`);
  const wholeMs = order === 'latestFirst' ? Number.MAX_SAFE_INTEGER : -1;
  return { timeMs: decoded.ms, n: decoded.n ?? wholeMs };
}

export interface MessageRefs {
  keys: MessageKey[];
  ids: MessageId[];
}

export function messageRefsOf(ids: MessageId[]): MessageRefs {
  return { ids, keys: keysOf(ids) };
}

/** The arguments of a list of a project. */
export interface ListArgs<Filter> {
  projectId: ProjectId;
  filter: Omit<Filter, 'messageId' | 'state'>;
  messages?: MessageRefs;
  /** State codes. */
  states?: number[];
  slice: Slice;
}

interface Named<State> {
  messageId?: MessageId[];
  state?: State[];
}

/** Replaces the message ids of a filter with keys, and its states with codes. Each window adds its own slice. */
export function encodeList<State, Filter extends Named<State>>(
  { projectId, filter: { messageId, state, ...filter } }: InProject & { filter: Filter },
  codeOf: (state: State) => number,
): Omit<ListArgs<Filter>, 'slice'> {
  return {
    ...{ projectId, filter },
    ...(messageId && { messages: messageRefsOf(messageId) }),
    ...(state && { states: state.map(codeOf) }),
  };
}

/** The keys of message ids. An id that this server cannot have made has no key, and is skipped. */
export function keysOf(ids: readonly MessageId[]): MessageKey[] {
  return ids.flatMap((id) => keyOfMessageId(id) ?? []);
}
