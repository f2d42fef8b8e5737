/**
 * Retries from the DLQ (contract M 17.3 and 17.4): a dead message becomes a new message, and so do the messages of a
 * failed run.
 */
import { newHeaderMap } from '../../protocol/headers.ts';
import { mintMessageId, type RandomBytes } from '../../protocol/ids.ts';
import type { CallbackSettings, PublishOptions } from '../../protocol/options/settings.ts';
import { mergeRedactions } from '../../protocol/redaction.ts';
import type { Message, MessageKey, Millis } from '../model.ts';
import { spanOfMessage, traceWithin } from '../spans.ts';
import type { DeadMessage } from '../stores.ts';
import { type AcceptContext, notBeforeOf } from './accept.ts';

/** The successor of a dead message: the original with a new id, without delay, and with the changes of the caller. */
export function successorOf(
  { message }: DeadMessage,
  key: MessageKey,
  override: DeadRetryOverride,
  context: AcceptContext,
): Message {
  const { delayMs, notBeforeMs } = override;
  const { nowMs, randomness, isTraced } = context;
  const { trace: previousTrace } = message.settings;
  const trace = isTraced && !previousTrace ? traceWithin(spanOfMessage(message), previousTrace) : previousTrace;
  const random: RandomBytes = (count) => randomness.bytes(count);
  const dueAtMs = notBeforeOf(
    { ...(delayMs !== undefined && { delayMs }), ...(notBeforeMs !== undefined && { notBeforeMs }) },
    context,
  );
  const successor = copyAsNew(message, key, { nowMs, random }, dueAtMs);
  const { settings, ...changed } = withOverride(message, override);
  return { ...successor, ...changed, settings: { ...settings, ...(trace && { trace }) } };
}

type Overridable = Pick<Message, 'method' | 'header' | 'settings'>;

/** The members of a message that an override changes, with its changes. The times of the override are left to the caller. */
export function withOverride(
  { method, header, settings }: Overridable,
  {
    method: newMethod,
    header: newHeader,
    redact,
    delayMs: _delay,
    notBeforeMs: _notBefore,
    ...changes
  }: DeadRetryOverride,
): Overridable {
  return {
    method: newMethod ?? method,
    header: newHeader ? Object.assign(newHeaderMap(), header, newHeader) : header,
    settings: { ...settings, ...changes, ...(redact && { redact: mergeRedactions(settings.redact, redact) }) },
  };
}

/** A copy as a new message, with all its attempts left. */
export function copyAsNew(
  message: Message,
  key: MessageKey,
  { nowMs, random }: { nowMs: Millis; random: RandomBytes },
  notBeforeMs = nowMs,
): Message {
  return { ...message, key, id: mintMessageId(key, random), createdAtMs: nowMs, notBeforeMs };
}

/**
 * The changes that a DLQ retry may make to the stored message. A header replaces stored headers of the same name. A
 * redaction is added to the stored redaction, which can never be removed (contract M 19.6). A callback replaces the
 * stored callback with all its options. Without a delay or a time, the successor is due at once.
 */
export type DeadRetryOverride = Partial<
  Pick<PublishOptions, 'method' | 'header' | 'delayMs' | 'notBeforeMs'> & Omit<CallbackSettings, 'url' | 'features'>
>;
