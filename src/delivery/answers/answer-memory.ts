/** Limits the memory of response bodies over all attempts, whatever endpoints send (P9, P10). */
export class AnswerMemory {
  #bytesFree: number;

  constructor(bytesMax: number) {
    this.#bytesFree = bytesMax;
  }

  /**
   * Takes `bytes` for a response that already has `held`; returns false if it must not have more. A response may have at most
   * as much as then remains for all others, so that large responses always leave capacity for a new one.
   */
  tryTake(bytes: number, held: number): boolean {
    if (held + 2 * bytes > this.#bytesFree) return false;
    this.#bytesFree -= bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#bytesFree += bytes;
  }
}
