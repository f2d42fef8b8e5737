/**
 * How much of an answer is read, and what is kept of it? (contract M 7.6)
 *
 * Memory that is not needed any more is freed at once, by `transfer`. The garbage collector would free it later, and
 * until then many large answers would hold several times the memory that they need.
 */
import type { AnswerMemory } from './answer-memory.ts';

type Bytes = Uint8Array<ArrayBuffer>;

const EMPTY: Bytes = new Uint8Array(0);
/**
 * Bytes that every answer may take without asking. Most answers are shorter, and it is little for each attempt in
 * flight.
 */
const BYTES_GRANTED = 16 * 1024;

/**
 * Counts an answer's bytes up to a limit and keeps them if they are needed. Pieces are copied together as they come: an
 * endpoint that sends one byte at a time must not make us hold one buffer per byte.
 */
export class AnswerBody {
  readonly #bytesMax: number;
  readonly #keep: boolean;
  readonly #memory: AnswerMemory;
  #bytesTaken = 0;
  #bytesRead = 0;
  #kept = EMPTY;
  #keptLength = 0;
  #isCut = false;

  constructor(bytesMax: number, keep: boolean, memory: AnswerMemory) {
    this.#bytesMax = bytesMax;
    this.#keep = keep;
    this.#memory = memory;
  }

  /** Whether `release` must be called. */
  get holdsMemory(): boolean {
    return this.#bytesTaken > 0;
  }

  /** Bytes that are kept. */
  get length(): number {
    return this.#keptLength;
  }

  /** Whether more bytes came than are kept. */
  get isCut(): boolean {
    return this.#isCut;
  }

  /** False once the limit is passed, or no memory is left for more: the rest need not be read. */
  add(piece: Uint8Array): boolean {
    const room = this.#bytesMax - this.#bytesRead;
    this.#bytesRead += piece.length;
    const wanted = piece.length > room ? piece.subarray(0, room) : piece;
    this.#isCut = (this.#keep && !this.#append(wanted)) || piece.length > room;
    return !this.#isCut;
  }

  /** Frees the memory. Call it only when the bytes are not needed any more: every view of them becomes empty. */
  release(): void {
    this.#resize(0);
    this.#keptLength = 0;
    this.#memory.giveBack(this.#bytesTaken);
    this.#bytesTaken = 0;
  }

  bytes(): Uint8Array {
    if (this.#kept.length > this.#keptLength) this.#resize(this.#keptLength);
    return this.#kept;
  }

  #append(piece: Uint8Array): boolean {
    if (this.#keptLength === 0) {
      // A copy, since the piece is a view into a socket's buffer, which would be kept (and sent to threads) whole.
      this.#kept = new Uint8Array(piece);
      this.#keptLength = piece.length;
      return true;
    }
    const needed = this.#keptLength + piece.length;
    if (needed > this.#kept.length && !this.#grow(needed)) return false;
    this.#kept.set(piece, this.#keptLength);
    this.#keptLength = needed;
    return true;
  }

  #grow(needed: number): boolean {
    const capacity = Math.min(Math.max(needed, 2 * this.#keptLength, 1_024), this.#bytesMax);
    const wanted = Math.max(0, capacity - BYTES_GRANTED) - this.#bytesTaken;
    if (wanted > 0) {
      if (!this.#memory.tryTake(wanted, this.#bytesTaken)) return false;
      this.#bytesTaken += wanted;
    }
    this.#resize(capacity);
    return true;
  }

  #resize(capacity: number): void {
    if (this.#kept.length !== capacity) this.#kept = new Uint8Array(this.#kept.buffer.transfer(capacity));
  }
}
