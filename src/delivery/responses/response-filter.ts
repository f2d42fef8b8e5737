/**
 * Filters the bytes of a response before undici's parser reads them. All bytes pass unchanged, with these exceptions:
 *
 * - `100 Continue` is removed. HTTP clients must skip interim responses, including unsolicited ones
 *   (contract M 7.3.2, RFC 9110 section 15.2). undici skips 102 and 103, but closes the connection at a 100.
 * - A head with a harmless defect that the strict parser rejects is repaired (`response-head.ts`). For the repair, a
 *   head that arrives in several chunks is buffered until it is complete.
 * - If the head, including interim responses, exceeds its limit, the connection is closed here. undici has the same limit,
 *   but then creates an Error with a stack for each header that it has read. 64 KiB of short headers block the process for
 *   half a second, and a hostile endpoint could repeat this (P9).
 * - Data is passed on in slices. The trailers of a chunked body are not limited here: slices bound the cost of their errors.
 */
import type { Socket } from 'node:net';
import { headEndOf, isDefective, MalformedResponse, repairHead } from './response-head.ts';

/** Longer than common heads and short responses, so that these pass in one slice. */
export const SLICE_BYTES = 4_096;

const CONTINUE = Buffer.from('HTTP/1.1 100');
const HEAD_END = Buffer.from('\r\n\r\n');
/** The position of the status. Its first digit identifies interim responses. */
const STATUS_AT = 9;
const DIGIT_ONE = 0x31;
/** The length of `HTTP/`. These bytes of an incomplete head are passed on at once, so that the parser rejects other protocols. */
const BYTES_AHEAD = 5;

type Read = () => Buffer | null;

/** Filters the bytes that the parser reads from a connection. A connection has one socket after the other. */
export class ResponseFilter {
  readonly #headBytesMax: number;
  #awaitsHead = false;
  #headBytes = 0;
  /** Bytes that were read from the socket, but not passed on yet. */
  #rest: Buffer | undefined;
  /** The start of an incomplete head. */
  #partial: Buffer | undefined;
  /** The number of bytes of the incomplete head that were passed on. */
  #bytesAhead = 0;
  #wasRepaired = false;

  constructor(headBytesMax: number) {
    this.#headBytesMax = headBytesMax;
  }

  /**
   * Whether a head of the current response was repaired. Its connection must not be reused: the end of such a response
   * is uncertain, so bytes after it could be mistaken for the response to another request.
   */
  get wasRepaired(): boolean {
    return this.#wasRepaired;
  }

  /** Call this when a request is sent: the next bytes are the head of its response. */
  expectHead(): void {
    this.#awaitsHead = true;
    this.#headBytes = 0;
    this.#partial = undefined;
    this.#bytesAhead = 0;
    this.#wasRepaired = false;
  }

  /** Call this when the head of the final response was read. */
  headRead(): void {
    this.#awaitsHead = false;
  }

  /** Replaces `socket.read`, which undici calls until it returns null. */
  attach(socket: Socket): void {
    const read = socket.read.bind(socket) as Read;
    this.#rest = undefined;
    socket.read = (): Buffer | null => {
      let slice = this.#nextSlice(read);
      while (slice !== null && this.#awaitsHead) {
        this.#headBytes += slice.length;
        if (this.#headBytes > this.#headBytesMax + SLICE_BYTES) {
          socket.destroy(new MalformedResponse('its headers are too large'));
          return null;
        }
        if (this.#partial === undefined && this.#bytesAhead === 0 && isPlain(slice)) return slice;
        const passed = this.#takeHead(slice);
        if (passed instanceof MalformedResponse) {
          socket.destroy(passed);
          return null;
        }
        if (passed !== undefined) return passed;
        // `null` would mean that no more bytes are available.
        slice = this.#nextSlice(read);
      }
      return slice;
    };
  }

  #nextSlice(read: Read): Buffer | null {
    const chunk = this.#rest ?? read();
    if (chunk === null || chunk.length <= SLICE_BYTES) {
      this.#rest = undefined;
      return chunk;
    }
    this.#rest = chunk.subarray(SLICE_BYTES);
    return chunk.subarray(0, SLICE_BYTES);
  }

  /** Returns the bytes of a head to pass on; undefined if there are none yet, or for a `100 Continue`. */
  #takeHead(slice: Buffer): Buffer | MalformedResponse | undefined {
    const buffered = this.#partial?.length ?? 0;
    const bytes = joinBytes(this.#partial, slice) ?? slice;
    const end = headEndOf(bytes, buffered);
    if (end === -1) {
      this.#partial = bytes;
      if (this.#bytesAhead > 0) return undefined;
      this.#bytesAhead = Math.min(BYTES_AHEAD, bytes.length);
      return bytes.subarray(0, this.#bytesAhead);
    }
    this.#partial = undefined;
    // The bytes after the head will be read again, and counted then.
    this.#headBytes -= bytes.length - end;
    if (end < bytes.length) this.#rest = joinBytes(bytes.subarray(end), this.#rest);
    const head = bytes.subarray(0, end);
    if (CONTINUE.compare(head, 0, CONTINUE.length) === 0) return undefined;
    const repaired = this.#repairIfDefective(head);
    if (repaired instanceof MalformedResponse) return repaired;
    const passed = repaired.subarray(this.#bytesAhead);
    this.#bytesAhead = 0;
    return passed;
  }

  #repairIfDefective(head: Buffer): Buffer | MalformedResponse {
    if (!isDefective(head)) return head;
    this.#wasRepaired = true;
    return repairHead(head);
  }
}

/** Whether `slice` has the complete head of a final response without a defect. */
function isPlain(slice: Buffer): boolean {
  if (slice[STATUS_AT] === DIGIT_ONE) return false;
  const end = slice.indexOf(HEAD_END);
  return end !== -1 && !isDefective(slice.subarray(0, end + HEAD_END.length));
}

function joinBytes(first: Buffer | undefined, second: Buffer | undefined): Buffer | undefined {
  if (first === undefined || first.length === 0) return second;
  return second === undefined ? first : Buffer.concat([first, second]);
}
