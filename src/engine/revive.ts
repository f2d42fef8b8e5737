/** What a dead message becomes when it is retried from the DLQ: a new message (messaging.md 17, items 3 and 4). */
import { newHeaderMap } from '../protocol/headers.ts';
import { mintMessageId } from '../protocol/ids.ts';
import { joinRedactions } from '../protocol/redaction.ts';
import { type AcceptContext, notBeforeOf } from './accept.ts';
import type { DeadRetryOverride } from './commands.ts';
import type { Message, MessageKey } from './model.ts';
import type { DeadMessage } from './stores.ts';

/** The successor of `dead`: everything as published, but its own id, no delay, and what the caller replaces. */
export function succeed(
  { message }: DeadMessage,
  key: MessageKey,
  { method, header, redact, delayMs, notBeforeMs, ...settings }: DeadRetryOverride,
  context: AcceptContext,
): Message {
  const { nowMs, randomness } = context;
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
      ...(redact && { redact: joinRedactions(message.settings.redact, redact) }),
    },
  };
}
