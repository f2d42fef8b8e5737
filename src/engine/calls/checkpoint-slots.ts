/**
 * The delivery slots of a checkpoint. The slot of a settled message passes to the first message with which the call
 * continues, so calls continue even on a full worker. All other slots are reserved as for each new message.
 */

import type { ActiveClaims } from '../dispatch/active-claims.ts';
import { bytesOf } from '../dispatch/attempts.ts';
import { type BacklogKey, backlogKeyOf } from '../lanes/backlog-key.ts';
import type { DeliverySlots } from '../messages/intake.ts';
import type { Claimed, ClaimToken, Millis } from '../model.ts';

/** The part of the dispatcher that calls need for slots. */
export interface CallSlots extends DeliverySlots {
  readonly activeClaims: Pick<ActiveClaims, 'returnSlot' | 'rest' | 'resize'>;
  /**
   * Passes the slot of `done` to a message of `bytes`. Returns false, with nothing changed, if the backlog is over its
   * limit, or if this worker currently delivers nothing.
   */
  tryPass(done: Claimed, bytes: number, claimToken: ClaimToken): boolean;
  /** Reserves a slot with no bytes for the call of `first`, until `giveBack`. Returns false if no slot is free. */
  tryKeepIdle(first: Claimed): boolean;
  /** Notes that the endpoint of the backlog shows activity. */
  noteActivity(backlog: BacklogKey): void;
}

/** The slots for the messages that one checkpoint appends. `end` must be called, unless nothing was saved. */
export class CheckpointSlots implements DeliverySlots {
  readonly worker: string;
  readonly #slots: CallSlots;
  /** Settled messages whose slots have not been passed on. */
  #unpassed: readonly Claimed[];
  readonly #onClaimed: (claimed: Claimed) => void;
  /** Settled messages that have passed on their slots, each under the claim token that now has the slot. */
  readonly #passed = new Map<ClaimToken, Claimed>();

  /** Calls `onClaimed` for each message that has a slot and with which the call can continue. */
  constructor(slots: CallSlots, done: readonly Claimed[], onClaimed: (claimed: Claimed) => void) {
    this.worker = slots.worker;
    this.#slots = slots;
    this.#unpassed = done;
    this.#onClaimed = onClaimed;
  }

  tryReserve(backlog: BacklogKey, bytes: number, claimToken: ClaimToken): 'reserved' | 'wait' | 'none' {
    const source = this.#unpassed.find(({ message }) => backlogKeyOf(message) === backlog);
    if (source && this.#slots.tryPass(source, bytes, claimToken)) {
      this.#passed.set(claimToken, source);
      this.#unpassed = this.#unpassed.filter((each) => each !== source);
      return 'reserved';
    }
    return this.#slots.tryReserve(backlog, bytes, claimToken);
  }

  giveBack(claimToken: ClaimToken): void {
    const source = this.#passed.get(claimToken);
    if (!source) return this.#slots.giveBack(claimToken);
    this.#passed.delete(claimToken);
    this.#unpassed = [...this.#unpassed, source];
    this.#slots.activeClaims.returnSlot(source.claimToken, claimToken);
  }

  /** Sends the message if it is a request to another endpoint. The call continues with every other message. */
  start(claimed: Claimed): void {
    if (claimed.message.settings.run?.callType === 'step') this.#onClaimed(claimed);
    else this.#slots.start(claimed);
  }

  noteDue(dueAtMs: Millis): void {
    this.#slots.noteDue(dueAtMs);
  }

  noteWaitingBacklog(backlog: BacklogKey): void {
    this.#slots.noteWaitingBacklog(backlog);
  }

  /**
   * Frees the slots of the settled messages. `isEmpty`: the call has no messages any more, but keeps one slot until its
   * request has ended. Returns the message whose slot the call keeps.
   */
  end(isEmpty: boolean): Claimed | undefined {
    const [last, ...others] = this.#unpassed;
    for (const each of [...this.#passed.values(), ...others]) this.#slots.giveBack(each.claimToken);
    if (!last) return undefined;
    if (isEmpty) this.#slots.activeClaims.rest(last.claimToken);
    else this.#slots.giveBack(last.claimToken);
    return isEmpty ? last : undefined;
  }
}

/** The claimed message as part of a call: its journal is not sent and does not count for the bytes of its slot. */
export function asCallMessage(claimed: Claimed, { activeClaims }: Pick<CallSlots, 'activeClaims'>): Claimed {
  const message: Claimed = { ...claimed, isInCall: true };
  activeClaims.resize(message.claimToken, bytesOf(message));
  return message;
}
