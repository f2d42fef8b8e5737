/**
 * Which claims does this worker work on, and which delivery slot does each have? A claim has a claim from before the message is
 * saved as claimed until its outcome is saved. Claims in this worker's name without a claim are left over from a lost answer.
 */

import type { BacklogKey } from '../lanes/backlog-key.ts';
import type { InFlight } from '../lanes/in-flight.ts';
import type { ClaimToken, Millis } from '../model.ts';
import type { Clock, UnderWay } from '../ports.ts';

export interface ActiveClaim {
  backlog: BacklogKey;
  /** When the worker asked for the claim, as elapsed time. */
  readonly requestedAtMs: Millis;
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

  /** Takes a slot, whether there is room or not: a claim has been offered it, or another claim gives up its own. */
  takeSlot(token: ClaimToken, backlog: BacklogKey, bytes: number, requestedAtMs = this.#clock.elapsedMs): void {
    this.#inFlight.enter(backlog, bytes);
    const expected = this.#byToken.get(token) ?? { requestedAtMs };
    this.#byToken.set(token, Object.assign(expected, { backlog, bytes, hasSlot: true }));
  }

  /** Takes a slot if the worker, and the project and the origin of the backlog, have one. */
  tryTakeSlot(token: ClaimToken, backlog: BacklogKey, bytes: number): boolean {
    const hasRoom = this.#inFlight.fits(bytes) && this.#inFlight.capacityForNew(backlog) > 0;
    if (hasRoom) this.takeSlot(token, backlog, bytes);
    return hasRoom;
  }

  /** A claim without a slot: the message may yet get the slot of another. */
  expect(token: ClaimToken, backlog: BacklogKey): void {
    this.#byToken.set(token, { backlog, requestedAtMs: this.#clock.elapsedMs, bytes: 0, hasSlot: false });
  }

  /** Passes the slot of `from` to another message of its backlog. False, with nothing changed: the backlog must have fewer attempts. */
  tryPassSlot(from: ClaimToken, to: ClaimToken, bytes: number): boolean {
    const claim = this.#byToken.get(from);
    if (!claim?.hasSlot) return false;
    this.#inFlight.leave(claim.backlog, claim.bytes);
    claim.hasSlot = !this.tryTakeSlot(to, claim.backlog, bytes);
    if (claim.hasSlot) this.#inFlight.enter(claim.backlog, claim.bytes);
    return !claim.hasSlot;
  }

  /** Undoes `tryPass`. */
  returnSlot(from: ClaimToken, to: ClaimToken): void {
    const [claim, other] = [this.#byToken.get(from), this.#byToken.get(to)];
    if (!claim || !other) return;
    this.#byToken.delete(to);
    this.#inFlight.leave(other.backlog, other.bytes);
    this.#inFlight.enter(claim.backlog, claim.bytes);
    claim.hasSlot = true;
  }

  /** False, with nothing changed, when the bytes do not fit. */
  resize(token: ClaimToken, bytes: number): boolean {
    const claim = this.#byToken.get(token);
    if (!claim?.hasSlot || bytes === claim.bytes) return true;
    this.#inFlight.leave(claim.backlog, claim.bytes);
    const fits = bytes < claim.bytes || this.#inFlight.fits(bytes);
    if (fits) claim.bytes = bytes;
    this.#inFlight.enter(claim.backlog, claim.bytes);
    return fits;
  }

  /** The message is done. Its slot stays with its call until `giveBack`, for no bytes, and no cancellation ends the call. */
  rest(token: ClaimToken): void {
    const claim = this.#byToken.get(token);
    this.resize(token, 0);
    if (claim) claim.attempt = undefined;
  }

  /** Ends the claim, and gives up its slot if it still has one. */
  giveBack(token: ClaimToken): void {
    const claim = this.#byToken.get(token);
    this.#byToken.delete(token);
    if (!claim?.hasSlot) return;
    this.#inFlight.leave(claim.backlog, claim.bytes);
    this.#onFree();
  }
}
