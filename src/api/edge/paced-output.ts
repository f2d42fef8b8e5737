/**
 * Writes large responses in chunks, one chunk per turn of the event loop. Otherwise Node would encode and write a whole
 * response at once, and many large responses would delay all other requests.
 */
import type { ServerResponse } from 'node:http';
import type { Pacer } from './paced-input.ts';

/** Length of a chunk: in bytes, or in characters if the body is a text. Shorter responses are written at once. */
export const CHUNK_LENGTH = 64 * 1024;

export class PacedOutput {
  readonly #response: ServerResponse;
  readonly #body: string | Uint8Array;
  readonly #pacer: Pacer;
  readonly #written: () => void;
  #at = 0;

  /** `written` is called when the operating system has accepted the whole body, but not if the client has disconnected. */
  constructor(response: ServerResponse, body: string | Uint8Array, pacer: Pacer, written: () => void) {
    this.#response = response;
    this.#body = body;
    this.#pacer = pacer;
    this.#written = written;
    pacer.add(this);
  }

  /** Writes the next chunk. The following chunk waits for the flush of this chunk, and for another turn. */
  step(): boolean {
    if (this.#response.destroyed || this.#response.closed) return false;
    this.#response.write(this.#next(), (error) => {
      if (error) return;
      if (this.#at < this.#body.length) this.#pacer.add(this);
      else this.#written();
    });
    return false;
  }

  #next(): string | Uint8Array {
    const from = this.#at;
    const to = Math.min(from + CHUNK_LENGTH, this.#body.length);
    const body = this.#body;
    if (typeof body !== 'string') {
      this.#at = to;
      return body.subarray(from, to);
    }
    // A chunk must not end in the middle of a surrogate pair.
    this.#at = to < body.length && /[\uD800-\uDBFF]/.test(body.charAt(to - 1)) ? to - 1 : to;
    return body.slice(from, this.#at);
  }
}
