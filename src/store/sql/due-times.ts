/** The earliest time at which something becomes due that a batch has set going besides what its commands asked for. */
export class DueTimes {
  #earliestMs: number | null = null;

  note(dueAtMs: number): void {
    if (this.#earliestMs === null || dueAtMs < this.#earliestMs) this.#earliestMs = dueAtMs;
  }

  /** Null when there is none. */
  get earliestMs(): number | null {
    return this.#earliestMs;
  }
}
