/** How much of an answer is read, and what is kept of it? (messaging.md 7.6) */

const EMPTY = new Uint8Array(0);

/**
 * Counts an answer's bytes up to a limit and keeps them if someone will want them. Pieces are copied together as
 * they come: an endpoint that sends one byte at a time must not make us hold one buffer per byte.
 */
export class AnswerBody {
  readonly #bytesMax: number;
  readonly #keep: boolean;
  #bytesRead = 0;
  #kept: Uint8Array = EMPTY;
  #keptLength = 0;

  constructor(bytesMax: number, keep: boolean) {
    this.#bytesMax = bytesMax;
    this.#keep = keep;
  }

  /** False once the limit is passed: the rest is not wanted. */
  add(piece: Uint8Array): boolean {
    const room = this.#bytesMax - this.#bytesRead;
    this.#bytesRead += piece.length;
    if (this.#keep) this.#append(piece.length > room ? piece.subarray(0, room) : piece);
    return piece.length <= room;
  }

  bytes(): Uint8Array {
    return this.#kept.length === this.#keptLength ? this.#kept : this.#kept.slice(0, this.#keptLength);
  }

  #append(piece: Uint8Array): void {
    if (this.#keptLength === 0) {
      // A copy, since the piece is a view into a socket's buffer, which would be kept (and sent to threads) whole.
      this.#kept = new Uint8Array(piece);
      this.#keptLength = piece.length;
      return;
    }
    const needed = this.#keptLength + piece.length;
    if (needed > this.#kept.length) {
      const grown = new Uint8Array(Math.min(Math.max(needed, 2 * this.#keptLength, 1_024), this.#bytesMax));
      grown.set(this.#kept.subarray(0, this.#keptLength));
      this.#kept = grown;
    }
    this.#kept.set(piece, this.#keptLength);
    this.#keptLength = needed;
  }
}
