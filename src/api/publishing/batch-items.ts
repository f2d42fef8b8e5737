/** Reads the items of a batch request and passes them to a handler (contract M 22.3). */

import { Slices } from '../../engine/loops/slices.ts';
import type { Clock } from '../../engine/ports.ts';
import { toRunPublishError } from '../../protocol/workflow/run-errors.ts';
import { type ApiLimits, BATCH_HEADERS_PER_ITEM, BATCH_VALUES, HEADER_LINES_MAX } from '../limits.ts';
import { JSON_INLINE_BYTES_MAX, JSON_MEMORY_PER_BYTE } from '../requests/json-body.ts';
import type { JsonThread } from '../requests/json-thread.ts';
import type { RequestBody } from '../requests/request-body.ts';
import { InvalidItems, type ItemLimits, type RequestItem, readItems } from '../requests/request-items.ts';

type BatchLimits = Pick<ApiLimits, 'batchBytesMax' | 'batchItemsMax' | 'headerBytesMax'>;

/** The services needed to read and handle items. */
export interface ItemServices {
  limits: BatchLimits;
  json: JsonThread;
  clock: Clock;
  endOfTurn: () => Promise<void>;
}

/**
 * Reads the array and passes it to `handle`. Throws `ApiError` that names the item. With `mayContinueRun`, the sender
 * may be a running workflow, which gets 422 instead of 400, and 412 instead of 413: the workflow's library takes a 400
 * for the end of the run (contract W 4.7).
 */
export async function handleItems<T>(
  body: RequestBody,
  { limits, json, clock, endOfTurn }: ItemServices,
  mayContinueRun: boolean,
  handle: (items: RequestItem[], slices: Slices) => Promise<T>,
): Promise<T> {
  const bytes = await body.read({
    bytesMax: limits.batchBytesMax,
    setting: 'batch_bytes_max',
    memoryPerByte: JSON_MEMORY_PER_BYTE,
  });
  let items: RequestItem[] = [];
  try {
    const limitsOfItems = itemLimits(limits);
    items =
      bytes.length > JSON_INLINE_BYTES_MAX ? await json.items(bytes, limitsOfItems) : readItems(bytes, limitsOfItems);
    return await handle(items, new Slices(clock, endOfTurn));
  } catch (error) {
    const isRefused = error instanceof InvalidItems;
    const isOfRun = mayContinueRun && (isRefused ? error.isAnySentByRun : items.some((item) => item.isSentByRun));
    const refusal = isRefused ? error.cause : error;
    throw isOfRun ? toRunPublishError(refusal) : refusal;
  }
}

function itemLimits({ batchItemsMax, headerBytesMax }: BatchLimits): ItemLimits {
  return {
    itemsMax: batchItemsMax,
    valuesMax: Math.max(BATCH_VALUES.least, batchItemsMax * BATCH_VALUES.perItem),
    headers: { bytesMax: headerBytesMax, linesMax: HEADER_LINES_MAX },
    allHeaders: {
      bytesMax: Math.max(headerBytesMax, batchItemsMax * BATCH_HEADERS_PER_ITEM.bytes),
      linesMax: Math.max(HEADER_LINES_MAX, batchItemsMax * BATCH_HEADERS_PER_ITEM.lines),
    },
  };
}
