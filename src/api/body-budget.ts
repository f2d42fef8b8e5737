/** Counts the body bytes in memory over all requests, so that memory is bounded for any number of clients (P10). */
export class BodyBudget {
  readonly #bytesMax: number;
  #bytesUsed = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get bytesUsed(): number {
    return this.#bytesUsed;
  }

  /** False, with nothing taken, when `bytes` more would pass the limit. One request alone always fits. */
  tryTake(bytes: number): boolean {
    if (this.#bytesUsed > 0 && this.#bytesUsed + bytes > this.#bytesMax) return false;
    this.#bytesUsed += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#bytesUsed -= bytes;
  }
}
