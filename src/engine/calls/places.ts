/**
 * Which delivery slots does a checkpoint use? The slot of a message that is done passes to the first that the call goes on
 * with, so that also a full worker lets calls go on; all others are reserved like those of any new message.
 */
import { lineTo, type OriginLine } from '../lanes/origin-line.ts';
import type { DeliverySlots } from '../messages/placement.ts';
import type { Claimed, ClaimToken, Millis } from '../model.ts';

/** The dispatcher's slots, as far as calls need them. */
export interface CallSlots extends DeliverySlots {
  /**
   * Reserves a slot for a message of `bytes` in place of that of `done`, which it gives up. False, with nothing changed: its
   * line must have fewer attempts than it has, or this worker delivers nothing now.
   */
  tryPass(done: Claimed, bytes: number, claimToken: ClaimToken): boolean;
  /** What the slot of `done` was passed for is not saved as claimed: `done` has its slot again. */
  takeBack(done: Claimed, bytes: number, claimToken: ClaimToken): void;
  /** The slot of `done` was passed, and `done` is saved as delivered. */
  forget(done: Claimed): void;
  /** Gives up the slot of `done`. */
  giveUp(done: Claimed): void;
  /** `done` is over, but its slot, now for no bytes, is that of its call until `endRest`. */
  rest(done: Claimed): void;
  endRest(done: Claimed): void;
  /** A slot with `reservedBytes` was reserved for `claimed`, with which a call goes on. */
  keep(claimed: Claimed, reservedBytes: number): void;
  /** Takes a slot for no bytes for the call of `first`, until `endRest`; false: there is none. */
  tryRest(first: Claimed): boolean;
  /** An endpoint shows that it is at work. */
  noteHeard(line: OriginLine): void;
}

/** The slots for what one checkpoint appends. Unless nothing was saved, `end` must be called. */
export class CheckpointSlots implements DeliverySlots {
  readonly worker: string;
  readonly #slots: CallSlots;
  /** Whose slots are passed to nothing. */
  #unpassed: readonly Claimed[];
  readonly #take: (claimed: Claimed, reservedBytes: number) => void;
  /** Whose slot was passed for which claim. */
  readonly #passed = new Map<ClaimToken, Claimed>();

  /** `take` is called for each message that the call may go on with, which has a slot with `reservedBytes`. */
  constructor(slots: CallSlots, done: readonly Claimed[], take: (claimed: Claimed, reservedBytes: number) => void) {
    this.worker = slots.worker;
    this.#slots = slots;
    this.#unpassed = done;
    this.#take = take;
  }

  tryReserve(line: OriginLine, bytes: number, claimToken: ClaimToken): 'reserved' | 'wait' | 'none' {
    const passing = this.#unpassed.find(({ message }) => lineTo(message) === line);
    if (passing && this.#slots.tryPass(passing, bytes, claimToken)) {
      this.#passed.set(claimToken, passing);
      this.#unpassed = this.#unpassed.filter((each) => each !== passing);
      return 'reserved';
    }
    return this.#slots.tryReserve(line, bytes, claimToken);
  }

  giveBack(line: OriginLine, bytes: number, claimToken: ClaimToken): void {
    const passing = this.#passed.get(claimToken);
    if (!passing) return this.#slots.giveBack(line, bytes, claimToken);
    this.#passed.delete(claimToken);
    this.#unpassed = [...this.#unpassed, passing];
    this.#slots.takeBack(passing, bytes, claimToken);
  }

  /** A call to somebody else goes out; the call goes on with everything else. */
  start(claimed: Claimed, reservedBytes: number): void {
    if (claimed.message.settings.run?.callType === 'step') this.#take(claimed, reservedBytes);
    else this.#slots.start(claimed, reservedBytes);
  }

  noteDue(dueAtMs: Millis): void {
    this.#slots.noteDue(dueAtMs);
  }

  noteWaitingLine(line: OriginLine): void {
    this.#slots.noteWaitingLine(line);
  }

  /**
   * The messages that were to be done are so, or belong to somebody else by now. `isEmpty`: the call holds nothing any more.
   * It has a slot all the same until its request has ended; answers whose.
   */
  end(isEmpty: boolean): Claimed | undefined {
    const [last, ...others] = this.#unpassed;
    for (const each of this.#passed.values()) this.#slots.forget(each);
    for (const each of others) this.#slots.giveUp(each);
    if (!last) return undefined;
    if (isEmpty) this.#slots.rest(last);
    else this.#slots.giveUp(last);
    return isEmpty ? last : undefined;
  }
}

/** A message as a call holds it: its journal is not sent, and takes no part of its slot, which has `reservedBytes`. */
export function heldOf(claimed: Claimed, reservedBytes: number, slots: Pick<CallSlots, 'keep'>): Claimed {
  const held: Claimed = { ...claimed, isHeld: true };
  slots.keep(held, reservedBytes);
  return held;
}
