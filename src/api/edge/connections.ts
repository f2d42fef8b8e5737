/** Keeps for each open connection its unanswered requests, and how many wrong tokens it has sent in a row. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { PacedInput, Pacer } from './paced-input.ts';
import { PacedOutput } from './paced-output.ts';

/** A connection is closed after this many wrong tokens in a row, so that guessing costs a new connection each time. */
const REFUSALS_MAX = 16;

export class Connections {
  readonly #pacer: Pacer;
  readonly #bySocket = new WeakMap<Socket, Connection>();

  constructor(endOfTurn: () => Promise<void>) {
    this.#pacer = new Pacer(endOfTurn);
  }

  /** Call it for each accepted socket, after the HTTP server has set it up. */
  open(socket: Socket): void {
    this.of(socket).pace();
  }

  of(socket: Socket): Connection {
    let connection = this.#bySocket.get(socket);
    if (connection === undefined) {
      connection = new Connection(socket, this.#pacer);
      this.#bySocket.set(socket, connection);
    }
    return connection;
  }
}

export class Connection {
  readonly #socket: Socket;
  readonly #pacer: Pacer;
  /** In order of arrival. */
  readonly #unanswered = new Map<ServerResponse, IncomingMessage>();
  /** Those whose bodies are written in pieces. */
  readonly #writing = new Set<ServerResponse>();
  #latest: ServerResponse | undefined;
  #begun = 0;
  #refusals = 0;
  #isEnding = false;
  #input: PacedInput | undefined;
  #whenAnswered: (() => void) | undefined;
  #leaving: AbortController | undefined;

  constructor(socket: Socket, pacer: Pacer) {
    this.#socket = socket;
    this.#pacer = pacer;
  }

  get requestsStarted(): number {
    return this.#begun;
  }

  get requestsPending(): number {
    return this.#unanswered.size;
  }

  /** The latest request, while its body is still to come. */
  get receiving(): IncomingMessage | undefined {
    const request = this.#latest?.req;
    return request?.complete === false ? request : undefined;
  }

  get isWriting(): boolean {
    return this.#writing.size > 0;
  }

  /** Whether the last answer is being sent. Later input is ignored. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  /**
   * Aborts once the client has closed its side: it may have left, or it only sends nothing more. An answer that waits for
   * something optional is then sent at once.
   */
  get leaving(): AbortSignal {
    if (this.#leaving) return this.#leaving.signal;
    const leaving = new AbortController();
    this.#leaving = leaving;
    const abort = (): void => leaving.abort();
    if (this.#socket.readableEnded || this.#socket.destroyed) abort();
    else this.#socket.once('end', abort).once('close', abort);
    return leaving.signal;
  }

  /** Call it for each request when it arrives. */
  addRequest(request: IncomingMessage, response: ServerResponse): void {
    this.#begun += 1;
    this.#unanswered.set(response, request);
    this.#latest = response;
    response.once('close', () => {
      this.#unanswered.delete(response);
      this.#writing.delete(response);
      this.#input?.resume();
      this.#whenAnswered?.();
    });
  }

  /**
   * Call it before each answer is sent. Returns whether this answer is the last one of the connection; it never is
   * while later requests wait for an answer.
   */
  noteResponse(response: ServerResponse, status: number): boolean {
    this.#refusals = status === 401 ? this.#refusals + 1 : 0;
    if (this.#refusals < REFUSALS_MAX || this.#latest !== response) return false;
    this.end();
    return true;
  }

  /** Writes a large body in pieces, and reads no further request meanwhile. `written`: as for `PacedOutput`. */
  write(response: ServerResponse, body: string | Uint8Array, written: () => void): void {
    if (response.closed) return;
    this.#writing.add(response);
    new PacedOutput(response, body, this.#pacer, written);
  }

  /** All later input is ignored. */
  end(): void {
    this.#isEnding = true;
  }

  /** Reads the connection in turns with others, and no faster than its requests are answered. */
  pace(): void {
    this.#input = PacedInput.of(this.#socket, this, this.#pacer);
  }

  /**
   * The client has sent something that is not HTTP. `tell` is called when all earlier requests are answered. It is
   * never called when the answer now being sent belongs to an incomplete request.
   */
  fail(tell: () => void): void {
    if (this.#whenAnswered) return; // every further byte fails again
    this.#whenAnswered = () => {
      for (const [response, request] of this.#unanswered) {
        if (request.complete) return;
        if (response.headersSent) return this.#socket.destroySoon();
      }
      tell();
    };
    this.#whenAnswered();
  }
}
