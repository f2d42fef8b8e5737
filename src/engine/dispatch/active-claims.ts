/**
 * Which claims does this worker work on, and which delivery slot does each have? A claim has a permit from before the message is
 * saved as claimed until its outcome is saved. Claims in this worker's name without a permit are left over from a lost answer.
 */

import type { BacklogKey } from '../lanes/backlog-key.ts';
import type { InFlight } from '../lanes/in-flight.ts';
import type { ClaimToken, Millis } from '../model.ts';
import type { Clock, UnderWay } from '../ports.ts';

export interface ActiveClaim {
  backlog: BacklogKey;
  /** When the worker asked for the claim, as elapsed time. */
  readonly askedAtMs: Millis;
  /** False while another claim has its slot. */
  hasSlot: boolean;
  /** The body bytes of the slot. */
  bytes: number;
  /** Its attempt, once the request is being sent. */
  attempt?: UnderWay | undefined;
  isCancelled?: boolean;
}

export class ActiveClaims {
  readonly #inFlight: InFlight;
  readonly #clock: Pick<Clock, 'elapsedMs'>;
  readonly #onFree: () => void;
  readonly #byToken = new Map<ClaimToken, ActiveClaim>();

  /** Calls `onFree` when a slot becomes free. */
  constructor(inFlight: InFlight, clock: Pick<Clock, 'elapsedMs'>, onFree: () => void) {
    this.#inFlight = inFlight;
    this.#clock = clock;
    this.#onFree = onFree;
  }

  find(token: ClaimToken): ActiveClaim | undefined {
    return this.#byToken.get(token);
  }

  /** Takes a slot, whether there is room or not: a claim has been offered it, or another permit gives up its own. */
  take(token: ClaimToken, backlog: BacklogKey, bytes: number, askedAtMs = this.#clock.elapsedMs): void {
    this.#inFlight.enter(backlog, bytes);
    const expected = this.#byToken.get(token) ?? { askedAtMs };
    this.#byToken.set(token, Object.assign(expected, { backlog, bytes, hasSlot: true }));
  }

  /** Takes a slot if the worker, and the project and the origin of the backlog, have one. */
  tryTake(token: ClaimToken, backlog: BacklogKey, bytes: number): boolean {
    const hasRoom = this.#inFlight.hasSpace(bytes) && this.#inFlight.roomOfNew(backlog) > 0;
    if (hasRoom) this.take(token, backlog, bytes);
    return hasRoom;
  }

  /** A permit without a slot: the message may yet get the slot of another. */
  expect(token: ClaimToken, backlog: BacklogKey): void {
    this.#byToken.set(token, { backlog, askedAtMs: this.#clock.elapsedMs, bytes: 0, hasSlot: false });
  }

  /** Passes the slot of `from` to another message of its backlog. False, with nothing changed: the backlog must have fewer attempts. */
  tryPass(from: ClaimToken, to: ClaimToken, bytes: number): boolean {
    const permit = this.#byToken.get(from);
    if (!permit?.hasSlot) return false;
    this.#inFlight.leave(permit.backlog, permit.bytes);
    permit.hasSlot = !this.tryTake(to, permit.backlog, bytes);
    if (permit.hasSlot) this.#inFlight.enter(permit.backlog, permit.bytes);
    return !permit.hasSlot;
  }

  /** Undoes `tryPass`. */
  takeBack(from: ClaimToken, to: ClaimToken): void {
    const [permit, other] = [this.#byToken.get(from), this.#byToken.get(to)];
    if (!permit || !other) return;
    this.#byToken.delete(to);
    this.#inFlight.leave(other.backlog, other.bytes);
    this.#inFlight.enter(permit.backlog, permit.bytes);
    permit.hasSlot = true;
  }

  /** False, with nothing changed, when the bytes do not fit. */
  resize(token: ClaimToken, bytes: number): boolean {
    const permit = this.#byToken.get(token);
    if (!permit?.hasSlot || bytes === permit.bytes) return true;
    this.#inFlight.leave(permit.backlog, permit.bytes);
    const fits = bytes < permit.bytes || this.#inFlight.hasSpace(bytes);
    if (fits) permit.bytes = bytes;
    this.#inFlight.enter(permit.backlog, permit.bytes);
    return fits;
  }

  /** The message is done. Its slot stays with its call until `giveBack`, for no bytes, and no cancellation ends the call. */
  rest(token: ClaimToken): void {
    const permit = this.#byToken.get(token);
    this.resize(token, 0);
    if (permit) permit.attempt = undefined;
  }

  /** Ends the permit, and gives up its slot if it still has one. */
  giveBack(token: ClaimToken): void {
    const permit = this.#byToken.get(token);
    this.#byToken.delete(token);
    if (!permit?.hasSlot) return;
    this.#inFlight.leave(permit.backlog, permit.bytes);
    this.#onFree();
  }
}
