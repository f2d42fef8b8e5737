/** Publishes a stored message again, unchanged or with changes (contract M 22.41). */
import { Type } from '@sinclair/typebox';
import { type ReplayChanges, redactedPartsOf, replayOf } from '../../engine/messages/replay.ts';
import type { Message } from '../../engine/model.ts';
import { bytesOfBase64 } from '../../protocol/bodies.ts';
import { ApiError, invalidBody, quotaExceeded } from '../../protocol/errors.ts';
import { isObject, objectOf } from '../../protocol/json-objects.ts';
import { checkNewName } from '../../protocol/names.ts';
import { hasConfigPrefix, readConfigName } from '../../protocol/options/config-names.ts';
import { itemRawHeaders } from '../../protocol/options/options.ts';
import { readDestinationText } from '../../protocol/urls/destination.ts';
import { HEADER_LINES_MAX, messageLimit, VALUES_PER_ITEM_MAX } from '../limits.ts';
import { checkAddress } from '../publishing/destinations.ts';
import { JSON_INLINE_BYTES_MAX, JSON_MEMORY_PER_BYTE, parseJson } from '../requests/json-body.ts';
import { bodyTooLarge } from '../requests/request-body.ts';
import { type ApiResponse, jsonResponse } from '../response.ts';
import { type Call, type Route, row, type Services } from '../route.ts';
import { RetriedSchema } from '../schemas.ts';
import { readRetryOverride } from './retry-override.ts';

const ReplaySchema = Type.Object(
  {
    destination: Type.Optional(Type.String({ description: 'another URL to deliver to' })),
    queue: Type.Optional(
      Type.Union([Type.String(), Type.Null()], { description: 'another queue; null: outside of any queue' }),
    ),
    headers: Type.Optional(
      Type.Record(Type.String(), Type.Union([Type.String(), Type.Array(Type.String()), Type.Null()]), {
        description:
          'options that replace those of the message, and headers to deliver (Upstash-Forward-*, Content-Type); null removes such a header',
      }),
    ),
    body: Type.Optional(Type.String({ description: 'another body' })),
    bodyBase64: Type.Optional(Type.String({ description: 'another body that is not text' })),
  },
  { $id: 'Replay' },
);
const MEMBERS = Object.keys(ReplaySchema.properties);

export function replayRoutes(services: Services): Route[] {
  const { engine, limits, json, checkDestination } = services;
  const bodyLimit = messageLimit(limits.messageBytesMax);
  const headerLimit = { bytesMax: limits.headerBytesMax, linesMax: HEADER_LINES_MAX };

  async function replay(call: Call): Promise<ApiResponse> {
    const { projectId, id } = call;
    engine.checkAdmission(projectId);
    const changes = await readChanges(call);
    const message = await engine.storeOf(projectId).messages.findStored({ id });
    if (!message) throw new ApiError('not_found', `message ${id} not found`);
    refuseOfRun(message);
    const redacted = redactedPartsOf(message, changes);
    if (redacted.length > 0)
      throw invalidBody(`${redacted.join(', ')} must be given again, since the message is redacted`);
    const [published] = await engine.publish(projectId, [replayOf(message, changes)], call);
    if (published === 'tooManyQueues') throw quotaExceeded('maxQueues', limits.queuesMax);
    return jsonResponse(201, { messageId: published?.messageId });
  }

  async function readChanges(call: Call): Promise<ReplayChanges> {
    const given = objectOf((await readObject(call)) ?? {}, 'an object is needed');
    const unknown = Object.keys(given).find((name) => !MEMBERS.includes(name));
    if (unknown !== undefined) throw invalidBody(`${unknown.slice(0, 64)} is not one of ${MEMBERS.join(', ')}`);
    const url = await readUrl(given, call);
    const queueName = given['queue'] === null ? null : textOf(given, 'queue');
    if (queueName) checkNewName('queue name', queueName);
    const { removed, headers } = removedFrom(given['headers']);
    const rawHeaders = optionsOf(itemRawHeaders(headers, headerLimit));
    const body = bodyOf(given);
    if (body && body.length > bodyLimit.bytesMax) throw bodyTooLarge(bodyLimit);
    return {
      ...(await readRetryOverride({ projectId: call.projectId, rawHeaders }, services)),
      ...(url !== undefined && { url }),
      ...(queueName !== undefined && { queueName }),
      ...(body && { body }),
      ...(removed.length > 0 && { removed }),
    };
  }

  async function readObject({ body }: Call): Promise<unknown> {
    const { batchBytesMax: bytesMax } = limits;
    const bytes = await body.read({ bytesMax, setting: 'batch_bytes_max', memoryPerByte: JSON_MEMORY_PER_BYTE });
    if (bytes.length === 0) return undefined;
    return bytes.length > JSON_INLINE_BYTES_MAX
      ? json.value(bytes, VALUES_PER_ITEM_MAX)
      : parseJson(bytes, VALUES_PER_ITEM_MAX);
  }

  async function readUrl(given: Record<string, unknown>, { projectId }: Call): Promise<string | undefined> {
    const text = textOf(given, 'destination');
    if (text === undefined) return undefined;
    const destination = readDestinationText(text);
    if (destination.kind !== 'url') throw invalidBody('destination must be a URL');
    await checkAddress(destination.url, checkDestination(projectId));
    return destination.url;
  }

  return [
    {
      ...row('full', 'POST', '/v2/waypost/messages/:messageId/replay', 'replayMessage'),
      summary:
        'Publishes a message again, finished or not, as it was or with the changes of the body. A message of a workflow run is replayed with its run.',
      takes: { body: ReplaySchema },
      refusals: [404, 412],
      responses: { 201: RetriedSchema },
      handle: replay,
    },
  ];
}

function refuseOfRun({ id, settings: { run, wait, invoke } }: Message): void {
  if (run || wait || invoke) throw new ApiError('invalid_request', `message ${id} belongs to a workflow run`);
}

function textOf(given: Record<string, unknown>, name: string): string | undefined {
  const value = given[name];
  if (value !== undefined && typeof value !== 'string') throw invalidBody(`${name} must be a string`);
  return value;
}

/** Throws `ApiError` if both members are present, or `bodyBase64` is not base64. */
function bodyOf(given: Record<string, unknown>): Uint8Array | undefined {
  const text = textOf(given, 'body');
  const base64 = textOf(given, 'bodyBase64');
  if (base64 === undefined) return text === undefined ? undefined : new TextEncoder().encode(text);
  if (text !== undefined) throw invalidBody('body and bodyBase64 exclude each other');
  const bytes = bytesOfBase64(base64);
  if (!bytes) throw invalidBody('bodyBase64 must be padded base64');
  return bytes;
}

/** The names of the headers that are null, and the other headers. Throws `ApiError` if an option is null. */
function removedFrom(headers: unknown): { removed: string[]; headers: unknown } {
  if (!isObject(headers)) return { removed: [], headers };
  const entries = Object.entries(headers);
  const removed = entries.flatMap(([name, value]) => (value === null ? optionsOf([name]) : []));
  return {
    removed: removed.map((name) => {
      const { path, forwardedName } = readConfigName(name);
      if (forwardedName === '' || path.length > 0)
        throw invalidBody(`headers: ${name.slice(0, 64)} is an option, which null does not remove`);
      return forwardedName;
    }),
    headers: Object.fromEntries(entries.filter(([, value]) => value !== null)),
  };
}

/** The headers as config headers. Throws `ApiError` for a header that is not a config header. */
function optionsOf(rawHeaders: readonly string[]): string[] {
  return rawHeaders.map((text, index) => {
    if (index % 2 === 1 || hasConfigPrefix(text)) return text;
    if (text.toLowerCase() === 'content-type') return 'Upstash-Forward-Content-Type';
    const name = text.slice(0, 64);
    throw invalidBody(`headers: ${name} is not an option; Upstash-Forward-${name} forwards it`);
  });
}
