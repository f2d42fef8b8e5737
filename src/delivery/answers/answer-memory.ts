/** Bounds how many bytes of answers are in memory, over all attempts, whatever endpoints send (P9, P10). */
export class AnswerMemory {
  #bytesFree: number;

  constructor(bytesMax: number) {
    this.#bytesFree = bytesMax;
  }

  /**
   * False, with nothing taken, when an answer that holds `held` bytes may not have `bytes` more. An answer may hold
   * only as much as is then left for all others, so that large answers always leave room for a new one.
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
