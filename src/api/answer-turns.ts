/** Bounds the memory of large answers: those that do not fit in together are written one after the other (P10). */
export class AnswerTurns {
  readonly #bytesMax: number;
  /** In order of arrival. */
  readonly #waiting: { bytes: number; begin: () => void }[] = [];
  #bytesUsed = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /**
   * Resolves when there is room for `bytes`. Call the function that it resolves to exactly once, to give the room back.
   * One answer alone always fits.
   */
  async take(bytes: number): Promise<() => void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ bytes, begin: resolve });
    this.#beginNext();
    await promise;
    return () => {
      this.#bytesUsed -= bytes;
      this.#beginNext();
    };
  }

  #beginNext(): void {
    for (let next = this.#waiting[0]; next && this.#fits(next.bytes); next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#bytesUsed += next.bytes;
      next.begin();
    }
  }

  #fits(bytes: number): boolean {
    return this.#bytesUsed === 0 || this.#bytesUsed + bytes <= this.#bytesMax;
  }
}
