/** Limits the memory of the response bodies of all attempts (P9, P10). */
export class ResponseMemory {
  #bytesFree: number;

  constructor(bytesMax: number) {
    this.#bytesFree = bytesMax;
  }

  /**
   * Reserves `bytes` more for a response that holds `reserved` bytes, or returns false. A response may hold at most as
   * many bytes as remain free, so that large responses always leave capacity for a new response.
   */
  tryReserve(bytes: number, reserved: number): boolean {
    if (reserved + 2 * bytes > this.#bytesFree) return false;
    this.#bytesFree -= bytes;
    return true;
  }

  release(bytes: number): void {
    this.#bytesFree += bytes;
  }
}
