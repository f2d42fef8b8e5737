/**
 * The claims that this worker is working on, each with its delivery slot. An active claim exists from before the message
 * is saved as claimed until the outcome of the message is saved. If the store has a claim of this worker that is not
 * active here, the claim is left over from a lost response.
 */

import type { BacklogKey } from '../lanes/backlog-key.ts';
import type { InFlight } from '../lanes/in-flight.ts';
import type { ClaimToken, Millis } from '../model.ts';
import type { AttemptInFlight, Clock } from '../ports.ts';

export interface ActiveClaim {
  backlog: BacklogKey;
  /** When the worker requested the claim, as elapsed time. */
  readonly requestedAtMs: Millis;
  /** False while another claim has the slot of this claim. */
  hasSlot: boolean;
  /** The body bytes of the slot. */
  bytes: number;
  /** The attempt of the claim, once the request is being sent. */
  attempt?: AttemptInFlight | undefined;
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

  /** Takes a slot without checking the limits, because the slot was reserved or another claim gives it up. */
  takeSlot(token: ClaimToken, backlog: BacklogKey, bytes: number, requestedAtMs = this.#clock.elapsedMs): void {
    this.#inFlight.enter(backlog, bytes);
    const expected = this.#byToken.get(token) ?? { requestedAtMs };
    this.#byToken.set(token, Object.assign(expected, { backlog, bytes, hasSlot: true }));
  }

  /** Takes a slot if the worker, the project and the origin of the backlog each have a free slot. */
  tryTakeSlot(token: ClaimToken, backlog: BacklogKey, bytes: number): boolean {
    const hasCapacity = this.#inFlight.fits(bytes) && this.#inFlight.capacityForNew(backlog) > 0;
    if (hasCapacity) this.takeSlot(token, backlog, bytes);
    return hasCapacity;
  }

  /** Adds a claim without a slot: the claim may later get the slot of another claim. */
  expect(token: ClaimToken, backlog: BacklogKey): void {
    this.#byToken.set(token, { backlog, requestedAtMs: this.#clock.elapsedMs, bytes: 0, hasSlot: false });
  }

  /**
   * Passes the slot of `from` to another message of its backlog. Returns false, with nothing changed, if the backlog
   * exceeds a limit.
   */
  tryPassSlot(from: ClaimToken, to: ClaimToken, bytes: number): boolean {
    const claim = this.#byToken.get(from);
    if (!claim?.hasSlot) return false;
    this.#inFlight.leave(claim.backlog, claim.bytes);
    claim.hasSlot = !this.tryTakeSlot(to, claim.backlog, bytes);
    if (claim.hasSlot) this.#inFlight.enter(claim.backlog, claim.bytes);
    return !claim.hasSlot;
  }

  /** Undoes `tryPassSlot`. */
  returnSlot(from: ClaimToken, to: ClaimToken): void {
    const [claim, other] = [this.#byToken.get(from), this.#byToken.get(to)];
    if (!claim || !other) return;
    this.#byToken.delete(to);
    this.#inFlight.leave(other.backlog, other.bytes);
    this.#inFlight.enter(claim.backlog, claim.bytes);
    claim.hasSlot = true;
  }

  /** Changes the bytes of the slot. Returns false, with nothing changed, if the bytes do not fit. */
  resize(token: ClaimToken, bytes: number): boolean {
    const claim = this.#byToken.get(token);
    if (!claim?.hasSlot || bytes === claim.bytes) return true;
    this.#inFlight.leave(claim.backlog, claim.bytes);
    const fits = bytes < claim.bytes || this.#inFlight.fits(bytes);
    if (fits) claim.bytes = bytes;
    this.#inFlight.enter(claim.backlog, claim.bytes);
    return fits;
  }

  /**
   * Notes that the message is done. The call of the message keeps the slot, with no bytes, until `giveBack`. A
   * cancellation of the message no longer ends the call.
   */
  rest(token: ClaimToken): void {
    const claim = this.#byToken.get(token);
    this.resize(token, 0);
    if (claim) claim.attempt = undefined;
  }

  /** Ends the active claim, and frees the slot of the claim, if the claim has one. */
  giveBack(token: ClaimToken): void {
    const claim = this.#byToken.get(token);
    this.#byToken.delete(token);
    if (!claim?.hasSlot) return;
    this.#inFlight.leave(claim.backlog, claim.bytes);
    this.#onFree();
  }
}
