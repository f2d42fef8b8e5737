/** Where does a new message stand, and what is set going once it is saved? One answer for all that make messages. */
import { lineOf, type OriginLine } from '../lanes/origin-line.ts';
import type { Claimed, ClaimToken, Message, Millis, NewMessage, NewMessageState, WorkerId } from '../model.ts';
import { type Draft, firstEvents } from './accept.ts';
import type { Saved } from './accepted.ts';

/** The slots for attempts, as far as a new message takes part in them; the dispatcher has them. */
export interface DeliverySlots {
  /** In whose name messages are claimed. */
  readonly worker: WorkerId;
  /** For a claim under `claimToken`. */
  tryReserve(line: OriginLine, bytes: number, claimToken: ClaimToken): 'reserved' | 'wait' | 'none';
  giveBack(line: OriginLine, bytes: number, claimToken: ClaimToken): void;
  /** Makes the attempt of a message for which a slot with `reservedBytes` was reserved. */
  start(claimed: Claimed, reservedBytes: number): void;
  noteDue(dueAtMs: Millis): void;
  noteWaitingLine(line: OriginLine): void;
}

/** Reserves a slot if the message can go out at once. To be followed by `dispatchSaved`, whatever becomes of it. */
export function place(draft: Draft, claimToken: ClaimToken, slots: DeliverySlots): NewMessage {
  const state = stateOf(draft.message, claimToken, slots);
  return { ...draft, state, events: firstEvents(draft.message) };
}

function stateOf(message: Message, claimToken: ClaimToken, slots: DeliverySlots): NewMessageState {
  const dueAtMs = message.notBeforeMs;
  if (dueAtMs > message.createdAtMs) return { kind: 'due', dueAtMs };
  switch (slots.tryReserve(lineOf(message.projectId, message.origin), message.body.length, claimToken)) {
    case 'reserved':
      return { kind: 'claimed', claimToken, worker: slots.worker };
    case 'wait':
      return { kind: 'origin', dueAtMs };
    case 'none':
      return { kind: 'due', dueAtMs };
  }
}

/**
 * Starts what the store saved as claimed and tells of what waits; `saved` is how it was saved, `undefined` when it
 * was not. A reserved slot that is not used goes back. What a lane holds back needs nobody: the store tells when
 * it lets it go. `mayBeAlone`: it does not follow from a message whose queue's slot it may share.
 */
export function dispatchSaved(
  newMessage: NewMessage,
  saved: Saved | undefined,
  slots: DeliverySlots,
  mayBeAlone = true,
): void {
  const { message, state: proposed } = newMessage;
  const line = lineOf(message.projectId, message.origin);
  if (proposed.kind === 'claimed') {
    const { claimToken } = proposed;
    if (saved?.state !== 'claimed') return slots.giveBack(line, message.body.length, claimToken);
    const claimed: Claimed = {
      message,
      retried: 0,
      claimToken,
      claimedAtMs: message.createdAtMs,
    };
    if (mayBeAlone && isAlone(message)) claimed.isAlone = true;
    if (saved.journal) claimed.journal = saved.journal;
    // What the endpoint fetches by itself need not stay in memory meanwhile.
    if (saved.journal?.bytes === 0) claimed.message = { ...message, body: new Uint8Array(0) };
    return slots.start(claimed, message.body.length);
  }
  if (saved?.state === 'origin') slots.noteWaitingLine(line);
  else if (saved?.state === 'due') slots.noteDue(proposed.dueAtMs);
}

function isAlone({ settings: { queueName, flowControl, run } }: Message): boolean {
  return queueName === undefined && flowControl === undefined && run === undefined;
}
