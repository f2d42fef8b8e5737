/**
 * Collects the body of a response up to a limit (contract M 7.6).
 *
 * `transfer` frees unused memory at once. The garbage collector would free it later, and until then many large responses
 * would take several times the memory that they need.
 */
import type { ResponseMemory } from './response-memory.ts';

type Bytes = Uint8Array<ArrayBuffer>;

const EMPTY: Bytes = new Uint8Array(0);
/** Bytes that every response may take without a reservation. Most responses are shorter, so reservations are rare. */
const UNRESERVED_BYTES = 16 * 1024;

/**
 * Counts the bytes of a response up to a limit, and stores them if `mustStore` is set. Chunks are copied into one buffer: an
 * endpoint that sends one byte at a time must not cause one buffer per byte.
 */
export class ResponseBody {
  readonly #bytesMax: number;
  readonly #mustStore: boolean;
  readonly #memory: ResponseMemory;
  #bytesReserved = 0;
  #bytesRead = 0;
  #buffer = EMPTY;
  #length = 0;
  #isCut = false;

  constructor(bytesMax: number, mustStore: boolean, memory: ResponseMemory) {
    this.#bytesMax = bytesMax;
    this.#mustStore = mustStore;
    this.#memory = memory;
  }

  /** Whether memory is reserved, which `release` frees. */
  get mustRelease(): boolean {
    return this.#bytesReserved > 0;
  }

  /** Number of stored bytes. */
  get length(): number {
    return this.#length;
  }

  /** Whether more bytes arrived than are stored. */
  get isCut(): boolean {
    return this.#isCut;
  }

  /** Returns false once the limit is exceeded or no memory is left. The caller then stops reading. */
  add(chunk: Uint8Array): boolean {
    const capacity = this.#bytesMax - this.#bytesRead;
    this.#bytesRead += chunk.length;
    const wanted = chunk.length > capacity ? chunk.subarray(0, capacity) : chunk;
    this.#isCut = (this.#mustStore && !this.#append(wanted)) || chunk.length > capacity;
    return !this.#isCut;
  }

  /** Frees the memory. Call this only when the bytes are no longer needed: every view of the bytes becomes empty. */
  release(): void {
    this.#resize(0);
    this.#length = 0;
    this.#memory.release(this.#bytesReserved);
    this.#bytesReserved = 0;
  }

  bytes(): Uint8Array {
    if (this.#buffer.length > this.#length) this.#resize(this.#length);
    return this.#buffer;
  }

  #append(chunk: Uint8Array): boolean {
    if (this.#length === 0) {
      // Copied: the chunk is a view of the socket's buffer, which would be retained, and sent to threads, as a whole.
      this.#buffer = new Uint8Array(chunk);
      this.#length = chunk.length;
      return true;
    }
    const needed = this.#length + chunk.length;
    if (needed > this.#buffer.length && !this.#grow(needed)) return false;
    this.#buffer.set(chunk, this.#length);
    this.#length = needed;
    return true;
  }

  #grow(needed: number): boolean {
    const capacity = Math.min(Math.max(needed, 2 * this.#length, 1_024), this.#bytesMax);
    const wanted = Math.max(0, capacity - UNRESERVED_BYTES) - this.#bytesReserved;
    if (wanted > 0) {
      if (!this.#memory.tryReserve(wanted, this.#bytesReserved)) return false;
      this.#bytesReserved += wanted;
    }
    this.#resize(capacity);
    return true;
  }

  #resize(capacity: number): void {
    if (this.#buffer.length !== capacity) this.#buffer = new Uint8Array(this.#buffer.buffer.transfer(capacity));
  }
}
