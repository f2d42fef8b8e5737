/** Takes many messages at once: all that are valid, or none (messaging.md 22.3). */
import type { PublishCommand, Published } from '../engine/commands.ts';
import { readDestinationText } from '../protocol/destination.ts';
import { ApiError } from '../protocol/errors.ts';
import { itemRawHeaders, readPublishOptions } from '../protocol/options.ts';
import type { Answer } from './answer.ts';
import { checkAddress, groupNotFound } from './destinations.ts';
import { readJson } from './json-body.ts';
import { VALUES_PER_ITEM_MAX } from './limits.ts';
import { messageLimit, publishedJson } from './publish.ts';
import { bodyTooLarge } from './request-body.ts';
import type { Call, Route, Services } from './route.ts';
import { BatchItemsSchema, BatchSchema } from './schemas.ts';
import { refuseQueue, refuseUnavailable } from './unavailable-features.ts';

/** An item that passed validation: a message, or a refusal that concerns only its own place in the answer. */
type Item = { kind: 'message'; command: PublishCommand } | { kind: 'refused'; error: string };

export function batchRoutes(services: Services): Route[] {
  const { engine, checkDestination, clock, quotas, proxyHeaders, limits } = services;
  const batchLimit = {
    bytesMax: limits.batchBytesMax,
    setting: 'batch_bytes_max',
    valuesMax: limits.batchItemsMax * VALUES_PER_ITEM_MAX,
  };
  const itemLimit = messageLimit(limits.messageBytesMax);

  async function publishAll(call: Call): Promise<Answer> {
    const given = itemsOf(await readJson(call.body, batchLimit));
    const nowMs = clock.nowMs();
    const items = given.map((item, index) => {
      try {
        return readItem(item, nowMs, call.callerIp);
      } catch (error) {
        throw atItem(index, error);
      }
    });
    const commands = items.flatMap((item) => (item.kind === 'message' ? [item.command] : []));
    await Promise.all(items.map(checkItem));
    const published = await engine.publish(call.projectId, commands);
    return { status: 200, json: answerJson(items, published) };
  }

  async function checkItem(item: Item, index: number): Promise<void> {
    if (item.kind === 'refused') return;
    try {
      await checkAddress(item.command.url, checkDestination);
    } catch (error) {
      throw atItem(index, error);
    }
  }

  function itemsOf(body: unknown): unknown[] {
    if (!Array.isArray(body)) throw invalidBody('an array of messages is needed');
    if (body.length > limits.batchItemsMax) {
      throw invalidBody(`at most ${limits.batchItemsMax} items (batch_items_max), got ${body.length}`);
    }
    return body;
  }

  function readItem(item: unknown, nowMs: number, callerIp: string | undefined): Item {
    if (typeof item !== 'object' || item === null || Array.isArray(item)) throw invalidBody('an object is needed');
    const members = item as Record<string, unknown>;
    const destinationText = textMember(members, 'destination');
    const bodyText = textMember(members, 'body');
    const queue = textMember(members, 'queue');
    const rawHeaders = itemRawHeaders(members.headers);

    const destination = readDestinationText(destinationText);
    // The outer request's headers and token are not the item's: its own Authorization is there to be forwarded.
    const input = { rawHeaders, queryConfig: [], tokenInQuery: true, proxyHeaders };
    const options = readPublishOptions(input, queue === '' ? 'publish' : 'enqueue', quotas, nowMs);
    refuseQueue(queue);
    refuseUnavailable(options, rawHeaders, []);
    const body = Buffer.from(bodyText, 'utf8');
    if (body.length > itemLimit.bytesMax) throw bodyTooLarge(itemLimit);
    if (destination.kind === 'group') return { kind: 'refused', error: groupNotFound(destination.name).message };
    const command: PublishCommand = { url: destination.url, body, options };
    if (callerIp !== undefined) command.callerIp = callerIp;
    return { kind: 'message', command };
  }

  return [
    {
      method: 'POST',
      path: '/v2/batch',
      access: 'full',
      summary: 'Publishes several messages in one request.',
      takes: { body: BatchItemsSchema },
      refusals: [412],
      answers: { 200: BatchSchema },
      handle: publishAll,
    },
  ];
}

function answerJson(items: readonly Item[], published: readonly Published[]): string {
  let next = 0;
  const parts = items.map((item) => {
    if (item.kind === 'refused') return JSON.stringify({ error: item.error });
    const answered = published[next];
    next += 1;
    if (!answered) throw new Error('the engine answered fewer messages than it was given');
    return publishedJson(answered);
  });
  return `[${parts.join(',')}]`;
}

/** A text; absent and null are empty. */
function textMember(members: Record<string, unknown>, name: string): string {
  const value = Object.hasOwn(members, name) ? members[name] : undefined;
  if (value === undefined || value === null) return '';
  if (typeof value !== 'string') throw invalidBody(`${name} must be a string`);
  return value;
}

/** The same refusal, saying which item it was about, counting from 0. */
function atItem(index: number, error: unknown): unknown {
  return error instanceof ApiError ? new ApiError(error.code, `${error.message} (item ${index})`) : error;
}

function invalidBody(reason: string): ApiError {
  return new ApiError('invalid_body', `invalid request body: ${reason}`);
}
