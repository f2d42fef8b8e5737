/**
 * Saves new messages and dispatches them; all new messages pass through here. A message that can be sent at once gets a
 * delivery slot. After the save, the messages with slots are sent, and unused slots are given back.
 */
import { ApiError } from '../../protocol/errors.ts';
import { mintMessageId } from '../../protocol/ids.ts';
import type { EngineDeps } from '../deps.ts';
import { type BacklogKey, backlogKeyOf } from '../lanes/backlog-key.ts';
import { Slices } from '../loops/slices.ts';
import {
  type Claimed,
  type ClaimToken,
  type FollowUp,
  firstDueAtMs,
  type Message,
  type Millis,
  type NewMessage,
  type WorkerId,
} from '../model.ts';
import type { Reports } from '../reports.ts';
import { draftOfFollowUp } from '../runs/entries.ts';
import type { Numbers } from '../workers/numbers.ts';
import type { Draft } from './accept.ts';
import type { Accepted, Saved } from './accepted.ts';

type IntakeContext = Pick<EngineDeps, 'clock' | 'randomness' | 'settings' | 'endOfTurn'> & {
  numbers: Numbers;
  reports: Pick<Reports, 'accepted'>;
};

/**
 * Reads from the result of a save how each message was saved, in order; undefined or missing for a message that was not
 * saved.
 */
type SavedOf<Result> = (result: Result) => readonly (Saved | undefined)[];

interface SaveOptions {
  mayBeAlone?: boolean;
  isFromClient?: boolean;
  slots?: DeliverySlots;
}

/** The options of a save that a client has requested. */
export const FROM_CLIENT: SaveOptions = { isFromClient: true };

export class Intake {
  readonly #context: IntakeContext;
  readonly #slots: DeliverySlots;
  #isClosed = false;

  constructor(context: IntakeContext, slots: DeliverySlots) {
    this.#context = context;
    this.#slots = slots;
  }

  /** A draft of each follow-up, with a key and an id. Throws `StoreUnavailable`. */
  async draftsOf(follows: readonly FollowUp[]): Promise<Draft[]> {
    const { numbers, randomness, settings } = this.#context;
    const firstKey = await numbers.take(follows.length);
    return follows.map((followUp, index) => {
      const key = firstKey + index;
      const id = mintMessageId(key, (count) => randomness.bytes(count));
      return draftOfFollowUp(followUp, { key, id }, settings.lazyFetchBytes);
    });
  }

  /**
   * Proposes a state for each draft and passes the new messages to `save`. Afterwards no slot stays reserved, even if
   * `save` fails. Returns the result of `save` and rethrows its errors. Throws `StoreUnavailable` if there are no numbers
   * for claim tokens. `mayBeAlone`: as in `dispatchSaved`. `isFromClient`: throws `ApiError` 503 once the server is
   * shutting down. `slots`: used instead of the slots of the worker.
   */
  async save<Result>(
    drafts: readonly Draft[],
    save: (newMessages: NewMessage[]) => Promise<Result>,
    savedOf: SavedOf<Result>,
    { mayBeAlone = true, isFromClient = false, slots = this.#slots }: SaveOptions = {},
  ): Promise<Result> {
    if (drafts.length === 0) return save([]);
    const { reports, clock, numbers } = this.#context;
    const taken = numbers.take(drafts.length);
    const firstToken = taken instanceof Promise ? await taken : taken;
    const proposed = this.slices().map(drafts, (draft, index) => proposeState(draft, firstToken + index, slots));
    const newMessages = proposed instanceof Promise ? await proposed : proposed;
    let saved: readonly (Saved | undefined)[] = [];
    try {
      if (isFromClient && this.#isClosed) throw new ApiError('unavailable', 'the server is shutting down');
      const result = await save(newMessages);
      saved = savedOf(result);
      return result;
    } finally {
      const dispatched = this.slices().map(newMessages, (entry, index) => {
        const savedAs = saved[index];
        if (savedAs && savedAs.state !== 'dropped') reports.accepted(entry, clock.nowMs());
        dispatchSaved(entry, savedAs, slots, mayBeAlone);
      });
      if (dispatched instanceof Promise) await dispatched;
    }
  }

  /** Rejects all later requests of clients. */
  close(): void {
    this.#isClosed = true;
  }

  /** Slices for work on a number of items that a client chooses. */
  slices(): Slices {
    return new Slices(this.#context.clock, this.#context.endOfTurn);
  }
}

/** The delivery slots of the dispatcher, as new messages use them. */
export interface DeliverySlots {
  /** The worker in whose name messages are claimed. */
  readonly worker: WorkerId;
  /** Reserves a slot for a claim under `claimToken`. */
  tryReserve(backlog: BacklogKey, bytes: number, claimToken: ClaimToken): 'reserved' | 'wait' | 'none';
  giveBack(claimToken: ClaimToken): void;
  /** Makes the attempt of a message for which a slot was reserved. */
  start(claimed: Claimed): void;
  noteDue(dueAtMs: Millis): void;
  noteWaitingBacklog(backlog: BacklogKey): void;
}

/**
 * Proposes the state of a new message, and reserves a slot if the message can be sent at once. Only the worker knows its
 * slots, but the transaction that saves the message decides (`store/operations/lanes/admission.ts`), because only there
 * the holders of a queue or key are known. Call `dispatchSaved` afterwards, even if the message was not saved.
 */
export function proposeState(draft: Draft, claimToken: ClaimToken, slots: DeliverySlots): NewMessage {
  const { message } = draft;
  const dueAtMs = firstDueAtMs(message);
  if (dueAtMs > message.createdAtMs) return { ...draft, state: { kind: 'due', dueAtMs } };
  switch (slots.tryReserve(backlogKeyOf(message), message.body.length, claimToken)) {
    case 'reserved':
      return { ...draft, state: { kind: 'claimed', claimToken, worker: slots.worker } };
    case 'wait':
      return { ...draft, state: { kind: 'origin', dueAtMs } };
    case 'none':
      return { ...draft, state: { kind: 'due', dueAtMs } };
  }
}

/**
 * Starts a message that was saved as claimed, or notes that the message waits. `saved`: how the message was saved;
 * undefined if it was not saved. An unused slot is given back. If the message waits for a lane, this function does
 * nothing: the store reports when the lane releases the message. `mayBeAlone`: false if the message follows from another
 * message, whose lane permit it may share.
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
    // A body that the endpoint fetches itself need not stay in memory.
    if (saved.journal?.bytes === 0) claimed.message = { ...message, body: new Uint8Array(0) };
    return slots.start(claimed);
  }
  if (saved?.state === 'origin') slots.noteWaitingBacklog(backlogKeyOf(message));
  else if (saved?.state === 'due') slots.noteDue(proposed.dueAtMs);
}

function isAlone({ settings: { queueName, flowControl, run } }: Message): boolean {
  return queueName === undefined && flowControl === undefined && run === undefined;
}

/** How each message was saved; undefined for a message that was not saved. */
export function savedOf(accepted: readonly Accepted[]): (Saved | undefined)[] {
  return accepted.map((each) => (each.kind === 'accepted' ? each : undefined));
}
