/** What is known of each open connection: which of its requests are unanswered, and how many in a row had a wrong token. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { PacedInput, Pacer } from './paced-input.ts';

/** So many wrong tokens one after the other end a connection: whoever has nothing else to say is to pay for a new one. */
const REFUSALS_MAX = 16;

export class Connections {
  readonly #pacer: Pacer;
  readonly #bySocket = new WeakMap<Socket, Connection>();

  constructor(endOfTurn: () => Promise<void>) {
    this.#pacer = new Pacer(endOfTurn);
  }

  /** To be told of each socket when it is accepted, after the HTTP server has taken it over. */
  open(socket: Socket): void {
    this.of(socket).pace(this.#pacer);
  }

  of(socket: Socket): Connection {
    let connection = this.#bySocket.get(socket);
    if (connection === undefined) {
      connection = new Connection(socket);
      this.#bySocket.set(socket, connection);
    }
    return connection;
  }
}

export class Connection {
  readonly #socket: Socket;
  /** In the order in which they came. */
  readonly #unanswered = new Map<ServerResponse, IncomingMessage>();
  #latest: ServerResponse | undefined;
  #begun = 0;
  #refusals = 0;
  #isEnding = false;
  #input: PacedInput | undefined;
  #whenAnswered: (() => void) | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  get begun(): number {
    return this.#begun;
  }

  get underWay(): number {
    return this.#unanswered.size;
  }

  /** The latest request, while its body is still to come. */
  get receiving(): IncomingMessage | undefined {
    const request = this.#latest?.req;
    return request?.complete === false ? request : undefined;
  }

  /** Whether its last answer is on its way: what comes after is not looked at. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  /** To be told of each request when it comes. */
  begin(request: IncomingMessage, response: ServerResponse): void {
    this.#begun += 1;
    this.#unanswered.set(response, request);
    this.#latest = response;
    response.once('close', () => {
      this.#unanswered.delete(response);
      this.#input?.resume();
      this.#whenAnswered?.();
    });
  }

  /** To be told of each answer before it goes out: whether it is to be the last one. It never is while others are to follow. */
  answer(response: ServerResponse, status: number): boolean {
    this.#refusals = status === 401 ? this.#refusals + 1 : 0;
    if (this.#refusals < REFUSALS_MAX || this.#latest !== response) return false;
    this.end();
    return true;
  }

  /** Nothing that comes from now on is looked at. */
  end(): void {
    this.#isEnding = true;
  }

  /** It is heard in turns with others, and no more than it is answered. */
  pace(pacer: Pacer): void {
    this.#input = PacedInput.of(this.#socket, this, pacer);
  }

  /**
   * What follows its requests is no HTTP. `tell` is called when all that came before is answered; never when the answer that is
   * going out is to a request that is not complete.
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
