/** Tracks each open connection: its pending requests, and the wrong tokens that it has sent in a row. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { ProjectId } from '../../engine/model.ts';
import { PacedInput, Pacer } from './paced-input.ts';
import { PacedOutput } from './paced-output.ts';

/** A connection is closed after this many wrong tokens in a row, so that guessing tokens takes many connections. */
const REFUSALS_MAX = 16;

export class Connections {
  readonly #pacer: Pacer;
  readonly #bySocket = new WeakMap<Socket, Connection>();

  constructor(endOfTurn: () => Promise<void>) {
    this.#pacer = new Pacer(endOfTurn);
  }

  /** Call this for each accepted socket, after the HTTP server has set up the socket. */
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
  /** The project of the latest request; 0: not known yet. */
  projectId: ProjectId = 0;
  readonly #socket: Socket;
  readonly #pacer: Pacer;
  /** Requests without a complete response, in order of arrival. */
  readonly #pending = new Map<ServerResponse, IncomingMessage>();
  /** Responses whose bodies are being written in chunks. */
  readonly #writing = new Set<ServerResponse>();
  #latest: ServerResponse | undefined;
  #started = 0;
  #refusals = 0;
  #isEnding = false;
  #input: PacedInput | undefined;
  #onResponseEnd: (() => void) | undefined;
  #leaving: AbortController | undefined;

  constructor(socket: Socket, pacer: Pacer) {
    this.#socket = socket;
    this.#pacer = pacer;
  }

  get requestsStarted(): number {
    return this.#started;
  }

  get requestsPending(): number {
    return this.#pending.size;
  }

  /** The latest request, while its body is incomplete. */
  get receiving(): IncomingMessage | undefined {
    const request = this.#latest?.req;
    return request?.complete === false ? request : undefined;
  }

  get isWriting(): boolean {
    return this.#writing.size > 0;
  }

  /** Whether the last response of the connection is being sent. Later input is ignored. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  /**
   * Aborts once the client has closed its side of the connection. The client may have left, or may still wait for
   * responses. A response that waits for optional data is then sent at once.
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

  /** Call this for each request when it arrives. */
  addRequest(request: IncomingMessage, response: ServerResponse): void {
    this.#started += 1;
    this.#pending.set(response, request);
    this.#latest = response;
    response.once('close', () => {
      this.#pending.delete(response);
      this.#writing.delete(response);
      this.#input?.resume();
      this.#onResponseEnd?.();
    });
  }

  /**
   * Call this before each response is sent. Returns whether this response is the last one of the connection, which is
   * never the case while later requests are pending.
   */
  noteResponse(response: ServerResponse, status: number): boolean {
    this.#refusals = status === 401 ? this.#refusals + 1 : 0;
    if (this.#refusals < REFUSALS_MAX || this.#latest !== response) return false;
    this.end();
    return true;
  }

  /** Writes a large body in chunks, and reads the next request only after the body. `written`: see `PacedOutput`. */
  write(response: ServerResponse, body: string | Uint8Array, written: () => void): void {
    if (response.closed) return;
    this.#writing.add(response);
    new PacedOutput(response, body, this.#pacer, written);
  }

  /** Ignores all later input. */
  end(): void {
    this.#isEnding = true;
  }

  /** Reads the connection round-robin with other connections, and no faster than its responses are sent. */
  pace(): void {
    this.#input = PacedInput.of(this.#socket, this, this.#pacer);
  }

  /**
   * Call this when the client has sent invalid HTTP. Calls `respond` once the responses to all earlier requests are
   * sent. If the response to the incomplete request is already being sent, closes the connection without calling
   * `respond`.
   */
  fail(respond: () => void): void {
    if (this.#onResponseEnd) return; // every further byte calls `fail` again
    this.#onResponseEnd = () => {
      for (const [response, request] of this.#pending) {
        if (request.complete) return;
        if (response.headersSent) return this.#socket.destroySoon();
      }
      respond();
    };
    this.#onResponseEnd();
  }
}
