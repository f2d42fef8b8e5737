/**
 * Reads the body of a response up to a limit, and stores what is needed (contract M 7.6).
 *
 * Unused memory is freed at once by `transfer`. The garbage collector would free it later, and until then many large
 * responses would take several times the memory that they need.
 */
import type { AnswerMemory } from './answer-memory.ts';

type Bytes = Uint8Array<ArrayBuffer>;

const EMPTY: Bytes = new Uint8Array(0);
/** Bytes that every response may take without a reservation. Most responses are shorter, and it is little per attempt in flight. */
const BYTES_GRANTED = 16 * 1024;

/**
 * Counts the bytes of a response up to a limit, and stores them if they are needed. Chunks are copied into one buffer: an
 * endpoint that sends one byte at a time must not cause one buffer per byte.
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

  /** Number of stored bytes. */
  get length(): number {
    return this.#keptLength;
  }

  /** Whether more bytes arrived than are stored. */
  get isCut(): boolean {
    return this.#isCut;
  }

  /** Returns false once the limit is exceeded or no memory is left; the rest need not be read. */
  add(chunk: Uint8Array): boolean {
    const capacity = this.#bytesMax - this.#bytesRead;
    this.#bytesRead += chunk.length;
    const wanted = chunk.length > capacity ? chunk.subarray(0, capacity) : chunk;
    this.#isCut = (this.#keep && !this.#append(wanted)) || chunk.length > capacity;
    return !this.#isCut;
  }

  /** Frees the memory. Call it only when the bytes are no longer needed: every view of them becomes empty. */
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

  #append(chunk: Uint8Array): boolean {
    if (this.#keptLength === 0) {
      // Copied, since the chunk is a view of a socket's buffer, which would be retained (and sent to threads) as a whole.
      this.#kept = new Uint8Array(chunk);
      this.#keptLength = chunk.length;
      return true;
    }
    const needed = this.#keptLength + chunk.length;
    if (needed > this.#kept.length && !this.#grow(needed)) return false;
    this.#kept.set(chunk, this.#keptLength);
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
