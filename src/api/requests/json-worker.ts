/**
 * The entry point of the thread that parses large JSON. It sends items in slices, since the receiver cannot interrupt the
 * deserialization of a message.
 */
import { type MessagePort, parentPort } from 'node:worker_threads';
import { parseCheckpoint } from '../runs/checkpoint-json.ts';
import { parseJson } from './json-body.ts';
import { errorReply, type JsonReply, type JsonRequest } from './json-jobs.ts';
import { InvalidItems, type RequestItem, readItems } from './request-items.ts';

/** Limits of a slice. A message of this size is received within a few milliseconds. */
const SLICE = { items: 100, headerTexts: 4_000, bodyBytes: 256 * 1024 };

/** Buffers from this length on are transferred to the other thread; smaller buffers are cheaper to copy. */
const TRANSFERRED_BYTES_MIN = 16 * 1024;

if (parentPort) serve(parentPort);

function serve(owner: MessagePort): void {
  let items: RequestItem[] = [];
  let sent = 0;
  const reply = (request: JsonRequest): [JsonReply, ArrayBuffer[]?] => {
    if (request.kind === 'value') return [{ kind: 'value', value: parseJson(request.bytes, request.valuesMax) }];
    if (request.kind === 'checkpoint') {
      const { value, steps } = parseCheckpoint(request.bytes, request.othersMax);
      return [{ kind: 'value', value }, buffersToTransfer(steps)];
    }
    if (request.kind === 'items') {
      items = readItems(request.bytes, request.limits);
      sent = 0;
    }
    const slice = sliceFrom(items, sent);
    sent += slice.length;
    const isLast = sent === items.length;
    if (isLast) items = [];
    return [{ kind: 'items', items: slice, isLast }, buffersToTransfer(slice.map(({ body }) => body))];
  };
  owner.on('message', (request: JsonRequest) => {
    try {
      owner.postMessage(...reply(request));
    } catch (error) {
      const isRefused = error instanceof InvalidItems;
      owner.postMessage(errorReply(isRefused ? error.cause : error, isRefused && error.isAnySentByRun));
    }
  });
}

/** Returns at least one item if any items are left. */
function sliceFrom(items: readonly RequestItem[], first: number): RequestItem[] {
  let texts = 0;
  let bytes = 0;
  let end = first;
  for (; end < items.length && end - first < SLICE.items; end += 1) {
    const item = items[end];
    texts += item?.rawHeaders.length ?? 0;
    const length = item?.body.length ?? 0;
    bytes += length < TRANSFERRED_BYTES_MIN ? length : 0;
    if (end > first && (texts > SLICE.headerTexts || bytes > SLICE.bodyBytes)) break;
  }
  return items.slice(first, end);
}

function buffersToTransfer(bodies: readonly Uint8Array<ArrayBuffer>[]): ArrayBuffer[] {
  return bodies.flatMap(({ length, buffer }) => (length < TRANSFERRED_BYTES_MIN ? [] : [buffer]));
}
