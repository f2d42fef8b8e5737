/**
 * Writes large answers in pieces, one piece in each turn of the event loop. By itself, Node encodes and writes a whole
 * answer at once. With many connections that ask for large answers, everybody else would wait for all of them.
 */
import type { ServerResponse } from 'node:http';
import type { Pacer } from './paced-input.ts';

/** Bytes of a piece, and characters of one where the body is a text. Smaller answers are written at once. */
export const CHUNK_LENGTH = 64 * 1024;

export class PacedOutput {
  readonly #response: ServerResponse;
  readonly #body: string | Uint8Array;
  readonly #pacer: Pacer;
  readonly #written: () => void;
  #at = 0;

  /** `written` is called when the client, or the system for it, has taken the whole body; not when it has gone. */
  constructor(response: ServerResponse, body: string | Uint8Array, pacer: Pacer, written: () => void) {
    this.#response = response;
    this.#body = body;
    this.#pacer = pacer;
    this.#written = written;
    pacer.add(this);
  }

  /** Writes the next piece. The one after it waits until the client has taken this one, and for another turn. */
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
    // A piece must not end in the middle of a pair of surrogates.
    this.#at = to < body.length && /[\uD800-\uDBFF]/.test(body.charAt(to - 1)) ? to - 1 : to;
    return body.slice(from, this.#at);
  }
}
