/** What a dead message becomes when it is retried from the DLQ: a new message (messaging.md 17, items 3 and 4). */
import { mintMessageId } from '../protocol/ids.ts';
import type { AcceptContext } from './accept.ts';
import type { DeadRetryOverride } from './commands.ts';
import type { Message, MessageKey } from './model.ts';
import type { DeadMessage } from './stores.ts';

/** The successor of `dead`: everything as published, but its own id, no delay, and what the caller replaces. */
export function succeed(
  dead: DeadMessage,
  key: MessageKey,
  override: DeadRetryOverride,
  { nowMs, randomness }: AcceptContext,
): Message {
  return {
    ...dead.message,
    key,
    id: mintMessageId(key, (count) => randomness.bytes(count)),
    createdAtMs: nowMs,
    notBeforeMs: nowMs,
    settings: { ...dead.message.settings, ...override },
  };
}
