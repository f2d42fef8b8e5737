/** How many bytes of answers are in memory, over all attempts? Bounds it, whatever endpoints send (P9, P10). */
export class AnswerMemory {
  #bytesFree: number;

  constructor(bytesMax: number) {
    this.#bytesFree = bytesMax;
  }

  /**
   * False, with nothing taken, when an answer that holds `held` bytes may not have `bytes` more: one may hold as much
   * as is left for all others, so that those who fill it leave something to a newcomer.
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
