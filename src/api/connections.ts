/**
 * What is known of each open connection: which of its requests are unanswered, how many in a row had a wrong token, and whether it
 * sends requests faster than they are answered.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Clock } from '../engine/ports.ts';
import { PacedInput, Pacer } from './paced-input.ts';

/** So many wrong tokens one after the other end a connection: whoever has nothing else to say is to pay for a new one. */
const REFUSALS_MAX = 16;

/** Requests of one connection that may be unanswered before it counts as one that floods. Clients have one, or a few. */
const UNANSWERED_USUAL = 8;

/** After a flood was seen, new connections are suspected for so long: their first bytes may be more of it. */
const SUSPICION_MS = 60_000;

export class Connections {
  readonly #clock: Clock;
  readonly #pacer: Pacer;
  readonly #bySocket = new WeakMap<Socket, Connection>();
  #suspiciousUntilMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, endOfTurn: () => Promise<void>) {
    this.#clock = clock;
    this.#pacer = new Pacer(clock, endOfTurn);
  }

  /** To be told of each socket when it is accepted, after the HTTP server has taken it over. */
  open(socket: Socket): void {
    if (this.#clock.elapsedMs < this.#suspiciousUntilMs) this.of(socket).pace(this.#pacer);
  }

  of(socket: Socket): Connection {
    let connection = this.#bySocket.get(socket);
    if (connection === undefined) {
      connection = new Connection(socket);
      this.#bySocket.set(socket, connection);
    }
    return connection;
  }

  /** To be told of each request when it comes. Resolves when it is its turn; `undefined`: that is now. */
  begin(request: IncomingMessage, response: ServerResponse): Promise<void> | undefined {
    const connection = this.of(request.socket);
    connection.begin(request, response);
    if (connection.underWay <= UNANSWERED_USUAL) return undefined;
    this.#suspiciousUntilMs = this.#clock.elapsedMs + SUSPICION_MS;
    connection.pace(this.#pacer);
    return connection.turn();
  }
}

export class Connection {
  readonly #socket: Socket;
  /** In the order in which they came. */
  readonly #unanswered = new Map<ServerResponse, IncomingMessage>();
  /** The response to the latest request. */
  #latest: ServerResponse | undefined;
  #refusals = 0;
  #isEnding = false;
  #input: PacedInput | undefined;
  #whenAnswered: (() => void) | undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** Requests that are unanswered and have had their turn. */
  get underWay(): number {
    return this.#unanswered.size - (this.#input?.requestsWaiting ?? 0);
  }

  /** Whether its last answer is on its way: what comes after is not looked at. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  begin(request: IncomingMessage, response: ServerResponse): void {
    this.#unanswered.set(response, request);
    this.#latest = response;
    response.once('close', () => {
      this.#unanswered.delete(response);
      this.#input?.goOn();
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

  /** From now on it is heard in turns with others of its kind, and no more than it is answered. */
  pace(pacer: Pacer): void {
    this.#input ??= PacedInput.of(this.#socket, this, pacer);
  }

  turn(): Promise<void> | undefined {
    return this.#input?.turn();
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
