/**
 * Splits a stream of bytes into HTTP messages for counting endpoints and load generators, which need no other parsing.
 * Supports only messages with `Content-Length`, such as those of the benchmarks, and throws on a chunked message.
 */
type OnMessage = (buffer: Buffer, bodyStart: number, bodyEnd: number, headStart: number) => void;

const HEAD_END = Buffer.from('\r\n\r\n');
const CONTENT_LENGTH = /\r\ncontent-length: *(\d+)/i;
const CHUNKED = /\r\ntransfer-encoding:/i;

export class RequestSplitter {
  readonly #onMessage: OnMessage;
  #rest: Buffer | undefined;

  constructor(onMessage: OnMessage) {
    this.#onMessage = onMessage;
  }

  push(chunk: Buffer): void {
    let buffer = chunk;
    if (this.#rest !== undefined) {
      buffer = Buffer.concat([this.#rest, chunk]);
      this.#rest = undefined;
    }
    let start = 0;
    while (start < buffer.length) {
      const headEnd = buffer.indexOf(HEAD_END, start);
      if (headEnd === -1) break;
      const bodyStart = headEnd + HEAD_END.length;
      const bodyEnd = bodyStart + bodyLength(buffer.toString('latin1', start, headEnd));
      if (bodyEnd > buffer.length) break;
      this.#onMessage(buffer, bodyStart, bodyEnd, start);
      start = bodyEnd;
    }
    if (start < buffer.length) this.#rest = start === 0 ? buffer : buffer.subarray(start);
  }
}

function bodyLength(head: string): number {
  const length = CONTENT_LENGTH.exec(head)?.[1];
  if (length !== undefined) return Number(length);
  if (CHUNKED.test(head)) throw new Error('the benchmarks do not read chunked messages');
  return 0;
}
