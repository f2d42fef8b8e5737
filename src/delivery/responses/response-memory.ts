/** Limits the memory of the response bodies of all attempts (P9, P10). */
export class ResponseMemory {
  #bytesFree: number;

  constructor(bytesMax: number) {
    this.#bytesFree = bytesMax;
  }

  /**
   * Reserves `bytes` for a response that has already reserved `reserved` bytes; returns false if that is too much. A response
   * may reserve at most as much as is then free, so that large responses always leave capacity for a new one.
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
