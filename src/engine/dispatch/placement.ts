/**
 * Reserves a delivery slot for a new message before it is saved, and starts or notes the message after. Only the worker knows its
 * slots, so it proposes a state. The transaction that saves the message decides (`store/operations/lanes/entry.ts`), since only there
 * the holders of a queue or key are known.
 */
import { lineTo, type OriginLine } from '../lanes/origin-line.ts';
import type { Draft } from '../messages/accept.ts';
import type { Saved } from '../messages/accepted.ts';
import {
  type Claimed,
  type ClaimToken,
  firstDueAtMs,
  type Message,
  type Millis,
  type NewMessage,
  type WorkerId,
} from '../model.ts';

/** The dispatcher's delivery slots, as far as new messages need them. */
export interface DeliverySlots {
  /** The worker that messages are claimed for. */
  readonly worker: WorkerId;
  /** For a claim under `claimToken`. */
  tryReserve(line: OriginLine, bytes: number, claimToken: ClaimToken): 'reserved' | 'wait' | 'none';
  giveBack(claimToken: ClaimToken): void;
  /** Makes the attempt of a message for which a slot was reserved. */
  start(claimed: Claimed): void;
  noteDue(dueAtMs: Millis): void;
  noteWaitingLine(line: OriginLine): void;
}

/**
 * Reserves a slot if the message can go out at once. Call `dispatchSaved` afterwards, even if the message was not
 * saved.
 */
export function place(draft: Draft, claimToken: ClaimToken, slots: DeliverySlots): NewMessage {
  const { message } = draft;
  const dueAtMs = firstDueAtMs(message);
  if (dueAtMs > message.createdAtMs) return { ...draft, state: { kind: 'due', dueAtMs } };
  switch (slots.tryReserve(lineTo(message), message.body.length, claimToken)) {
    case 'reserved':
      return { ...draft, state: { kind: 'claimed', claimToken, worker: slots.worker } };
    case 'wait':
      return { ...draft, state: { kind: 'origin', dueAtMs } };
    case 'none':
      return { ...draft, state: { kind: 'due', dueAtMs } };
  }
}

/**
 * Starts a message that was saved as claimed, and notes one that waits. `saved` is how it was saved, `undefined` when it
 * was not. An unused slot is given back. A message that a lane holds back needs nothing here: the store reports when the
 * lane releases it. `mayBeAlone`: false when it follows from a message whose lane slot it may share.
 */
export function dispatchSaved(
  newMessage: NewMessage,
  saved: Saved | undefined,
  slots: DeliverySlots,
  mayBeAlone = true,
): void {
  const { message, state: proposed } = newMessage;
  if (proposed.kind === 'claimed') {
    const { claimToken } = proposed;
    if (saved?.state !== 'claimed') return slots.giveBack(claimToken);
    const claimed: Claimed = {
      message,
      retried: 0,
      claimToken,
      claimedAtMs: message.createdAtMs,
    };
    if (mayBeAlone && isAlone(message)) claimed.isAlone = true;
    if (saved.journal) claimed.journal = saved.journal;
    // A body that the endpoint fetches by itself need not stay in memory.
    if (saved.journal?.bytes === 0) claimed.message = { ...message, body: new Uint8Array(0) };
    return slots.start(claimed);
  }
  if (saved?.state === 'origin') slots.noteWaitingLine(lineTo(message));
  else if (saved?.state === 'due') slots.noteDue(proposed.dueAtMs);
}

function isAlone({ settings: { queueName, flowControl, run } }: Message): boolean {
  return queueName === undefined && flowControl === undefined && run === undefined;
}
