/**
 * Reads the items of a batch from its JSON: an array of objects, each with a destination (contract M 22.3). Runs in the thread
 * that parses the JSON, which may be another thread.
 */

import { ApiError, invalidBody } from '../../protocol/errors.ts';
import { isObject } from '../../protocol/json-objects.ts';
import { type HeaderLimit, headersTooLarge, itemRawHeaders } from '../../protocol/options/options.ts';
import { type Destination, readDestinationText } from '../../protocol/urls/destination.ts';
import { isSentByRun } from '../../protocol/workflow/run-errors.ts';
import { parseJson } from './json-body.ts';

/** One item of a batch, with checked types. */
export interface RequestItem {
  destination: Destination;
  /** In a buffer of its own, of exactly its size, since the buffer is passed to other threads. */
  body: Uint8Array<ArrayBuffer>;
  queue: string;
  rawHeaders: string[];
  /** Whether a running workflow sends the item. */
  isSentByRun: boolean;
}

export interface ItemLimits {
  itemsMax: number;
  /** Maximum number of JSON values in the whole body. */
  valuesMax: number;
  /** The headers of one item. */
  headers: HeaderLimit;
  /** The headers of all items together. */
  allHeaders: HeaderLimit;
}

const UTF8 = new TextEncoder();

/** Throws `InvalidItems`, whose cause is an `ApiError` that names the item. */
export function readItems(json: Uint8Array, limits: ItemLimits): RequestItem[] {
  const parsed = json.length === 0 ? undefined : parseJson(json, limits.valuesMax);
  try {
    const items: RequestItem[] = [];
    let lines = 0;
    let bytes = 0;
    for (const [index, item] of itemsOf(parsed, limits.itemsMax).entries()) {
      const read = readAt(index, () => readItem(item, limits.headers));
      for (const text of read.rawHeaders) bytes += text.length;
      lines += read.rawHeaders.length / 2;
      if (lines > limits.allHeaders.linesMax || bytes > limits.allHeaders.bytesMax) {
        throw headersTooLarge(limits.allHeaders, ' for all items together');
      }
      items.push(read);
    }
    return items;
  } catch (error) {
    throw new InvalidItems(error, isAnySentByRun(parsed));
  }
}

/** An item, or the whole batch, is invalid. */
export class InvalidItems extends Error {
  /** Whether a running workflow sent any item. Its library takes a 400 for the end of the run (contract W 4.7). */
  readonly isAnySentByRun: boolean;

  constructor(cause: unknown, isAnySentByRun: boolean) {
    super('the items of a request were refused', { cause });
    this.name = 'InvalidItems';
    this.isAnySentByRun = isAnySentByRun;
  }
}

function itemsOf(body: unknown, itemsMax: number): unknown[] {
  if (!Array.isArray(body)) throw invalidBody('an array of messages is needed');
  if (body.length > itemsMax) throw invalidBody(`at most ${itemsMax} items (batch_items_max), got ${body.length}`);
  return body;
}

/** Reads one item. Throws `ApiError`. */
export function readItem(item: unknown, headerLimit: HeaderLimit): RequestItem {
  if (!isObject(item)) throw invalidBody('an object is needed');
  const destinationText = textMember(item, 'destination');
  const body = textMember(item, 'body');
  const queue = textMember(item, 'queue');
  const rawHeaders = itemRawHeaders(item['headers'], headerLimit);
  return {
    destination: readDestinationText(destinationText),
    body: UTF8.encode(body),
    queue,
    rawHeaders,
    isSentByRun: isSentByRun({ rawHeaders, queryConfig: [] }),
  };
}

/** Whether a running workflow sent any item. The items may have any shape, since one of them is invalid. */
function isAnySentByRun(body: unknown): boolean {
  if (!Array.isArray(body)) return false;
  return body.some((item: unknown) => {
    const headers = isObject(item) && isObject(item['headers']) ? Object.entries(item['headers']) : [];
    const lines = headers.flatMap(([name, value]) => [value].flat().map((line: unknown) => [name, scalarText(line)]));
    return isSentByRun({ rawHeaders: lines.flat(), queryConfig: [] });
  });
}

/** The text of a scalar. Empty for arrays and objects: they may be deeply nested, or have a member called `toString`. */
function scalarText(value: unknown): string {
  return typeof value === 'object' ? '' : String(value);
}

/** The member as text; empty if it is absent or null. */
function textMember(members: Record<string, unknown>, name: string): string {
  const value = Object.hasOwn(members, name) ? members[name] : undefined;
  if (value === undefined || value === null) return '';
  if (typeof value !== 'string') throw invalidBody(`${name} must be a string`);
  return value;
}

/** Calls `read`, and adds the number of the item to its error. */
export function readAt<T>(index: number, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw errorAtItem(index, error);
  }
}

/** The error with the number of the item, counted from 0. */
export function errorAtItem(index: number, error: unknown): unknown {
  return error instanceof ApiError ? new ApiError(error.code, `${error.message} (item ${index})`) : error;
}
