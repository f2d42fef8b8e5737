/**
 * Which bytes of an answer reach undici's parser? All, with three exceptions:
 *
 * - `100 Continue` is cut out. HTTP obliges clients to skip interim answers, unasked ones too
 *   (contract M 7.3.2, RFC 9110 section 15.2). undici skips 102 and 103, but breaks the connection off at a 100.
 * - A head (interim answers included) longer than its limit ends the connection here. undici has the limit too. But past
 *   it, undici makes an Error with a stack for each further header in what was read. 64 KiB of short headers stop the
 *   process for half a second, which one hostile endpoint could repeat at will (P9).
 * - Data that is longer than a slice is passed on in slices. This bounds the same cost in the trailers of a chunked body.
 */
import type { Socket } from 'node:net';

/** Longer than common heads and short answers, so that these pass untouched. */
export const SLICE_BYTES = 4_096;

const CONTINUE = Buffer.from('HTTP/1.1 100');
const HEAD_END = Buffer.from('\r\n\r\n');
/** Where the status begins: one byte tells most answers apart. */
const STATUS_AT = 9;
const DIGIT_ONE = 0x31;

/** An answer's head, or what came in place of one, passed its limit. */
class AnswerHeadTooLarge extends Error {
  readonly code = 'WAYPOST_HEAD_TOO_LARGE';

  constructor() {
    super('the head of the answer is too large');
    this.name = 'AnswerHeadTooLarge';
  }
}

type Read = () => Buffer | null;

/** Stands between the parser and the sockets of one connection, which has one socket after the other. */
export class AnswerGate {
  readonly #headBytesMax: number;
  #awaitsHead = false;
  #headBytes = 0;
  /** Read from the socket, not yet handed on. */
  #rest: Buffer | undefined;
  /** The beginning of the head of a 100 whose end has not come. */
  #partial: Buffer | undefined;

  constructor(headBytesMax: number) {
    this.#headBytesMax = headBytesMax;
  }

  /** A request goes out: what comes from now on is the head of its answer. */
  expectHead(): void {
    this.#awaitsHead = true;
    this.#headBytes = 0;
    this.#partial = undefined;
  }

  /** The final answer's head was read. */
  headRead(): void {
    this.#awaitsHead = false;
  }

  /** Takes the place of `socket.read`, through which undici reads everything until it answers null. */
  attach(socket: Socket): void {
    const read = socket.read.bind(socket) as Read;
    this.#rest = undefined;
    socket.read = (): Buffer | null => {
      let slice = this.#nextSlice(read);
      while (slice !== null && this.#awaitsHead) {
        this.#headBytes += slice.length;
        if (this.#headBytes > this.#headBytesMax + SLICE_BYTES) {
          socket.destroy(new AnswerHeadTooLarge());
          return null;
        }
        if (!this.#beginsWithContinue(slice)) return slice;
        this.#rest = joined(this.#afterContinue(slice), this.#rest);
        // `null` would say that nothing more is there; there may be.
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

  #beginsWithContinue(slice: Buffer): boolean {
    if (this.#partial !== undefined) return true;
    return slice[STATUS_AT] === DIGIT_ONE && CONTINUE.compare(slice, 0, CONTINUE.length) === 0;
  }

  /** What follows the head of a 100; empty when nothing does, or when the end of the head has not come yet. */
  #afterContinue(slice: Buffer): Buffer {
    const head = joined(this.#partial, slice) ?? slice;
    const end = head.indexOf(HEAD_END);
    this.#partial = end === -1 ? head : undefined;
    const after = end === -1 ? head.subarray(head.length) : head.subarray(end + HEAD_END.length);
    // These bytes are read again, and counted then.
    this.#headBytes -= after.length;
    return after;
  }
}

function joined(first: Buffer | undefined, second: Buffer | undefined): Buffer | undefined {
  if (first === undefined || first.length === 0) return second;
  return second === undefined ? first : Buffer.concat([first, second]);
}
