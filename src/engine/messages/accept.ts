/** Makes the new message of a publish: its key and id, its deduplication and its first log events. */

import { mintMessageId } from '../../protocol/ids.ts';
import { memo } from '../../protocol/memo.ts';
import {
  contentHash,
  contentHashInChunks,
  type DeduplicationContent,
  explicitHash,
  HASH_CHUNK_BYTES,
} from '../../protocol/options/deduplication.ts';
import type { EngineDeps } from '../deps.ts';
import type { Slices } from '../loops/slices.ts';
import type { Message, MessageKey, Millis, NewMessage, ProjectId } from '../model.ts';
import type { Randomness } from '../ports.ts';
import type { PublishCommand } from './publish-command.ts';

/** The data that each new message of a publish needs in addition to its command. */
export interface AcceptContext {
  projectId: ProjectId;
  nowMs: Millis;
  /** How far `nowMs` is ahead of the wall clock; absent: 0. The times that clients name are times of the wall clock. */
  leadMs?: Millis;
  randomness: Randomness;
  deduplicationWindowMs: Millis;
  lazyAboveBytes: number;
  /** New runs must be created later than this time, so that they differ from earlier runs with the same id. */
  runsCreatedAfterMs?: Millis;
  /** Whether a message without a trace starts a trace. */
  isTraced?: boolean;
}

/** The context for messages that the project publishes now. */
export function acceptContextOf(
  { clock, randomness, settings, spans }: Pick<EngineDeps, 'clock' | 'randomness' | 'settings' | 'spans'>,
  projectId: ProjectId,
): AcceptContext {
  const nowMs = clock.nowMs();
  return {
    ...{ projectId, nowMs, leadMs: clock.leadMs, randomness },
    deduplicationWindowMs: settings.deduplicationWindowMs,
    lazyAboveBytes: settings.lazyFetchBytes,
    isTraced: spans !== undefined,
  };
}

/** A message on its way into the store, before it has a state. */
export type Draft = Omit<NewMessage, 'state'>;

/** The message of `command` under a unique key, with the deduplication that prevents a second message. */
export function draftOf(
  command: PublishCommand,
  key: MessageKey,
  context: AcceptContext,
  hash = deduplicationHashOf(command),
): Draft {
  const message = newMessageOf(command, key, context);
  const deduplication =
    hash === undefined ? undefined : { hash, expiresAtMs: context.nowMs + context.deduplicationWindowMs };
  return deduplication ? { message, deduplication } : { message };
}

/** The new message with the content of `command`. */
export function newMessageOf(command: PublishCommand, key: MessageKey, context: AcceptContext): Message {
  const { options } = command;
  const message: Message = {
    key,
    id: mintMessageId(key, (count) => context.randomness.bytes(count)),
    projectId: context.projectId,
    url: command.url,
    origin: originOf(command.url),
    method: options.method,
    header: options.header,
    body: command.body,
    createdAtMs: context.nowMs,
    notBeforeMs: notBeforeOf(options, context),
    settings: options.settings,
  };
  if (command.callerIp !== undefined) message.callerIp = command.callerIp;
  return message;
}

/** The earliest time of the message's first attempt. */
export function notBeforeOf(
  { delayMs = 0, notBeforeMs }: { delayMs?: Millis; notBeforeMs?: Millis },
  { nowMs, leadMs = 0 }: Pick<AcceptContext, 'nowMs' | 'leadMs'>,
): Millis {
  return notBeforeMs === undefined ? nowMs + delayMs : notBeforeMs + leadMs;
}

/** The hash that prevents a second publish with the same id, or with the same content, from becoming a message. */
function deduplicationHashOf(command: PublishCommand): string | undefined {
  const requested = command.options.deduplication;
  if (!requested) return undefined;
  return requested.by === 'id' ? explicitHash(requested.id, endpointUrlOf(command)) : contentHash(contentOf(command));
}

/**
 * Like `deduplicationHashOf`, but computed in `slices`, for a large body. Returns undefined if no such hash is needed.
 */
export function slowDeduplicationHashOf(command: PublishCommand, slices: Slices): Promise<string> | undefined {
  if (command.options.deduplication?.by !== 'content' || command.body.length <= HASH_CHUNK_BYTES) return undefined;
  return contentHashInChunks(contentOf(command), () => (slices.isOver ? slices.next() : undefined));
}

function contentOf(command: PublishCommand): DeduplicationContent {
  const { url, body, options } = command;
  const destination = options.settings.topicName ?? url;
  const endpointUrl = endpointUrlOf(command);
  const content = { destination, body, header: options.explicitHeader };
  return endpointUrl === undefined ? content : { ...content, endpointUrl };
}

/** Each endpoint of a URL group is deduplicated separately (contract M 11.6). */
function endpointUrlOf({ url, options }: PublishCommand): string | undefined {
  return options.settings.topicName === undefined ? undefined : url;
}

/** `Message.origin` of an accepted URL. Results are cached, because most messages go to a few destinations. */
export const originOf: (url: string) => string = memo((url) => new URL(url).origin);
