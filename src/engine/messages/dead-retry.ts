/** What a dead message becomes when it is retried from the DLQ: a new message (contract M 17.3 and 17.4). */
import { newHeaderMap } from '../../protocol/headers.ts';
import { mintMessageId } from '../../protocol/ids.ts';
import type { CallbackSettings, PublishOptions } from '../../protocol/options/settings.ts';
import { joinRedactions } from '../../protocol/redaction.ts';
import type { Message, MessageKey } from '../model.ts';
import { spanOfMessage, traceWithin } from '../spans.ts';
import type { DeadMessage } from '../stores.ts';
import { type AcceptContext, notBeforeOf } from './accept.ts';

/**
 * The successor of a dead message: as it was published, but with a new id, without delay, and with the caller's
 * changes.
 */
export function succeed(
  { message }: DeadMessage,
  key: MessageKey,
  { method, header, redact, delayMs, notBeforeMs, ...settings }: DeadRetryOverride,
  context: AcceptContext,
): Message {
  const { nowMs, randomness, isTraced } = context;
  const { trace: known } = message.settings;
  const trace = isTraced && !known ? traceWithin(spanOfMessage(message), known) : known;
  return {
    ...message,
    key,
    id: mintMessageId(key, (count) => randomness.bytes(count)),
    method: method ?? message.method,
    header: header ? Object.assign(newHeaderMap(), message.header, header) : message.header,
    createdAtMs: nowMs,
    notBeforeMs: notBeforeOf(
      { ...(delayMs !== undefined && { delayMs }), ...(notBeforeMs !== undefined && { notBeforeMs }) },
      context,
    ),
    settings: {
      ...message.settings,
      ...settings,
      ...(trace && { trace }),
      ...(redact && { redact: joinRedactions(message.settings.redact, redact) }),
    },
  };
}

/**
 * What a DLQ retry may replace of the stored message. A header replaces stored ones of the same name, a redaction is added to the
 * stored one, which nobody can take back (contract M 19.6), and a callback replaces the stored one with all its options. Without a
 * delay and a time the successor is due at once.
 */
export type DeadRetryOverride = Partial<
  Pick<PublishOptions, 'method' | 'header' | 'delayMs' | 'notBeforeMs'> & Omit<CallbackSettings, 'url' | 'features'>
>;
