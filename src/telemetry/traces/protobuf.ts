/** Writes a message of protobuf, field by field, into one buffer that grows. Field numbers below 16 only: their tag is a byte. */

const VARINT = 0;
const EIGHT_BYTES = 1;
const WITH_LENGTH = 2;

/** The most that a tag and a number take. */
const NUMBER_BYTES_MAX = 11;

export class ProtobufWriter {
  #bytes: Buffer;
  #length = 0;

  /** `bytes`: what is usually written. */
  constructor(bytes = 256) {
    this.#bytes = Buffer.allocUnsafeSlow(bytes);
  }

  get length(): number {
    return this.#length;
  }

  /** A whole number that is not negative. */
  varint(field: number, value: number): void {
    this.#reserve(NUMBER_BYTES_MAX);
    this.#tag(field, VARINT);
    this.#length = this.#putVarint(value, this.#length);
  }

  fixed64(field: number, value: bigint): void {
    this.#reserve(NUMBER_BYTES_MAX);
    this.#tag(field, EIGHT_BYTES);
    this.#length = this.#bytes.writeBigUInt64LE(value, this.#length);
  }

  text(field: number, value: string): void {
    const begun = this.begin(field);
    this.#reserve(3 * value.length); // as many as UTF-8 takes at most
    this.#length += this.#bytes.write(value, this.#length);
    this.end(begun);
  }

  /** Bytes that are given as hexadecimal digits. */
  hex(field: number, digits: string): void {
    const begun = this.begin(field);
    this.#reserve(digits.length / 2);
    this.#length += this.#bytes.write(digits, this.#length, 'hex');
    this.end(begun);
  }

  /** A message within this one, whose fields are what is written until `end` is given the result. */
  begin(field: number): number {
    this.#reserve(NUMBER_BYTES_MAX);
    this.#tag(field, WITH_LENGTH);
    this.#length += 1; // most are shorter than 128 bytes, and their length takes one
    return this.#length;
  }

  end(begun: number): void {
    const length = this.#length - begun;
    const more = varintBytes(length) - 1;
    if (more > 0) {
      this.#reserve(more);
      this.#bytes.copyWithin(begun + more, begun, this.#length);
      this.#length += more;
    }
    this.#putVarint(length, begun - 1);
  }

  /** What was written, as a copy; then begins anew. */
  take(): Buffer {
    const taken = Buffer.from(this.#bytes.subarray(0, this.#length));
    this.#length = 0;
    return taken;
  }

  #tag(field: number, type: number): void {
    this.#bytes[this.#length] = field * 8 + type;
    this.#length += 1;
  }

  /** Answers where it ends. Not with shifts, which take 32 bits. */
  #putVarint(value: number, at: number): number {
    let rest = value;
    let end = at;
    while (rest > 127) {
      this.#bytes[end] = (rest % 128) + 128;
      rest = Math.floor(rest / 128);
      end += 1;
    }
    this.#bytes[end] = rest;
    return end + 1;
  }

  #reserve(bytes: number): void {
    const needed = this.#length + bytes;
    if (needed <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#bytes.length));
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}

function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest > 127; rest = Math.floor(rest / 128)) bytes += 1;
  return bytes;
}
