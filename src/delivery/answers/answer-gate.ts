/**
 * Which bytes of an answer reach undici's parser? All, with these exceptions:
 *
 * - `100 Continue` is cut out. HTTP obliges clients to skip interim answers, unasked ones too
 *   (contract M 7.3.2, RFC 9110 section 15.2). undici skips 102 and 103, but closes the connection at a 100.
 * - A head with a harmless defect that the strict parser refuses is repaired (`answer-head.ts`). For that, a head that
 *   arrives in pieces is held back until it is complete.
 * - A head (interim answers included) longer than its limit ends the connection here. undici has the limit too. But past
 *   it, undici makes an Error with a stack for each further header in what was read. 64 KiB of short headers stop the
 *   process for half a second, which one hostile endpoint could repeat at will (P9).
 * - Data that is longer than a slice is passed on in slices. This bounds the same cost in the trailers of a chunked body.
 */
import type { Socket } from 'node:net';
import { headEndOf, isDefective, MalformedAnswer, repairedHead } from './answer-head.ts';

/** Longer than common heads and short answers, so that these pass untouched. */
export const SLICE_BYTES = 4_096;

const CONTINUE = Buffer.from('HTTP/1.1 100');
const HEAD_END = Buffer.from('\r\n\r\n');
/** Where the status begins: one byte tells interim answers apart. */
const STATUS_AT = 9;
const DIGIT_ONE = 0x31;
/** `HTTP/`: of a head that is held back this much is passed on, so that the parser refuses what is no HTTP at once. */
const BYTES_AHEAD = 5;

type Read = () => Buffer | null;

/** Filters what the parser reads from the sockets of one connection, which has one socket after the other. */
export class AnswerGate {
  readonly #headBytesMax: number;
  #awaitsHead = false;
  #headBytes = 0;
  /** Read from the socket, not yet passed on. */
  #rest: Buffer | undefined;
  /** The beginning of a head whose end has not come. */
  #partial: Buffer | undefined;
  /** How many bytes of the head that is awaited have been passed on. */
  #bytesAhead = 0;
  #wasRepaired = false;

  constructor(headBytesMax: number) {
    this.#headBytesMax = headBytesMax;
  }

  /**
   * Whether a head of the present answer was repaired. Its connection must not be used again: where such an answer ends
   * is less certain, and what follows could be taken for the answer to another request.
   */
  get wasRepaired(): boolean {
    return this.#wasRepaired;
  }

  /** A request goes out: what comes from now on is the head of its answer. */
  expectHead(): void {
    this.#awaitsHead = true;
    this.#headBytes = 0;
    this.#partial = undefined;
    this.#bytesAhead = 0;
    this.#wasRepaired = false;
  }

  /** The final answer's head was read. */
  headRead(): void {
    this.#awaitsHead = false;
  }

  /** Replaces `socket.read`, through which undici reads everything until it answers null. */
  attach(socket: Socket): void {
    const read = socket.read.bind(socket) as Read;
    this.#rest = undefined;
    socket.read = (): Buffer | null => {
      let slice = this.#nextSlice(read);
      while (slice !== null && this.#awaitsHead) {
        this.#headBytes += slice.length;
        if (this.#headBytes > this.#headBytesMax + SLICE_BYTES) {
          socket.destroy(new MalformedAnswer('its headers are too large'));
          return null;
        }
        if (this.#partial === undefined && this.#bytesAhead === 0 && isPlain(slice)) return slice;
        const passed = this.#takeHead(slice);
        if (passed instanceof MalformedAnswer) {
          socket.destroy(passed);
          return null;
        }
        if (passed !== undefined) return passed;
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

  /** What is passed on of a head; undefined when nothing is yet, or when it is that of a 100. */
  #takeHead(slice: Buffer): Buffer | MalformedAnswer | undefined {
    const held = this.#partial?.length ?? 0;
    const bytes = joined(this.#partial, slice) ?? slice;
    const end = headEndOf(bytes, held);
    if (end === -1) {
      this.#partial = bytes;
      if (this.#bytesAhead > 0) return undefined;
      this.#bytesAhead = Math.min(BYTES_AHEAD, bytes.length);
      return bytes.subarray(0, this.#bytesAhead);
    }
    this.#partial = undefined;
    // These bytes are read again, and counted then.
    this.#headBytes -= bytes.length - end;
    if (end < bytes.length) this.#rest = joined(bytes.subarray(end), this.#rest);
    const head = bytes.subarray(0, end);
    if (CONTINUE.compare(head, 0, CONTINUE.length) === 0) return undefined;
    const whole = this.#repaired(head);
    if (whole instanceof MalformedAnswer) return whole;
    const passed = whole.subarray(this.#bytesAhead);
    this.#bytesAhead = 0;
    return passed;
  }

  #repaired(head: Buffer): Buffer | MalformedAnswer {
    if (!isDefective(head)) return head;
    this.#wasRepaired = true;
    return repairedHead(head);
  }
}

/** Whether `slice` has the whole head of a final answer, without a defect. */
function isPlain(slice: Buffer): boolean {
  if (slice[STATUS_AT] === DIGIT_ONE) return false;
  const end = slice.indexOf(HEAD_END);
  return end !== -1 && !isDefective(slice.subarray(0, end + HEAD_END.length));
}

function joined(first: Buffer | undefined, second: Buffer | undefined): Buffer | undefined {
  if (first === undefined || first.length === 0) return second;
  return second === undefined ? first : Buffer.concat([first, second]);
}
