/** The items of a request that brings many messages at once: an array of objects, each with a destination (messaging.md 22.3). */
import { type Destination, readDestinationText } from '../protocol/destination.ts';
import { ApiError } from '../protocol/errors.ts';
import { itemRawHeaders } from '../protocol/options.ts';
import { isSentByRun, refusedInRun } from '../protocol/workflow/refusals.ts';
import { type JsonLimit, readJson } from './json-body.ts';
import { type ApiLimits, VALUES_PER_ITEM_MAX } from './limits.ts';
import type { RequestBody } from './request-body.ts';

/** An item whose members have the right types. */
export interface GivenItem {
  destination: Destination;
  body: string;
  queue: string;
  rawHeaders: string[];
}

/** What is read, and by which limits. */
interface Items {
  body: RequestBody;
  limits: Pick<ApiLimits, 'batchBytesMax' | 'batchItemsMax'>;
  /** Whether a running workflow may be their sender, which would take a 400 for the end of its run (workflow.md 4.7). */
  mayContinueRun: boolean;
}

/** Reads the array and has it handled. Throws `ApiError` 400, or 422, saying which item it is about. */
export async function handleItems<T>(
  { body, limits, mayContinueRun }: Items,
  handle: (given: GivenItem[]) => Promise<T>,
): Promise<T> {
  const limit: JsonLimit = {
    bytesMax: limits.batchBytesMax,
    setting: 'batch_bytes_max',
    valuesMax: limits.batchItemsMax * VALUES_PER_ITEM_MAX,
  };
  const parsed = await readJson(body, limit);
  try {
    const items = itemsOf(parsed, limits.batchItemsMax);
    return await handle(items.map((item, index) => at(index, () => shapeOf(item))));
  } catch (error) {
    throw mayContinueRun && isAnySentByRun(parsed) ? refusedInRun(error) : error;
  }
}

function itemsOf(body: unknown, itemsMax: number): unknown[] {
  if (!Array.isArray(body)) throw invalidBody('an array of messages is needed');
  if (body.length > itemsMax) throw invalidBody(`at most ${itemsMax} items (batch_items_max), got ${body.length}`);
  return body;
}

function shapeOf(item: unknown): GivenItem {
  if (!isObject(item)) throw invalidBody('an object is needed');
  const destinationText = textMember(item, 'destination');
  const body = textMember(item, 'body');
  const queue = textMember(item, 'queue');
  const rawHeaders = itemRawHeaders(item['headers']);
  return { destination: readDestinationText(destinationText), body, queue, rawHeaders };
}

/** Asked of items that may be anything, since one of them was refused. */
function isAnySentByRun(body: unknown): boolean {
  if (!Array.isArray(body)) return false;
  return body.some((item: unknown) => {
    const headers = isObject(item) && isObject(item['headers']) ? Object.entries(item['headers']) : [];
    const lines = headers.flatMap(([name, value]) => [value].flat().map((line: unknown) => [name, scalarText(line)]));
    return isSentByRun({ rawHeaders: lines.flat(), queryConfig: [] });
  });
}

/** Lists and objects have none: they may be of any depth, and have a `toString` of their own. */
function scalarText(value: unknown): string {
  return typeof value === 'object' ? '' : String(value);
}

/** A text; absent and null are empty. */
function textMember(members: Record<string, unknown>, name: string): string {
  const value = Object.hasOwn(members, name) ? members[name] : undefined;
  if (value === undefined || value === null) return '';
  if (typeof value !== 'string') throw invalidBody(`${name} must be a string`);
  return value;
}

/** What `read` answers; its refusal says which item it was about. */
export function at<T>(index: number, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw atItem(index, error);
  }
}

/** The same refusal, saying which item it was about, counting from 0. */
export function atItem(index: number, error: unknown): unknown {
  return error instanceof ApiError ? new ApiError(error.code, `${error.message} (item ${index})`) : error;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function invalidBody(reason: string): ApiError {
  return new ApiError('invalid_body', `invalid request body: ${reason}`);
}
