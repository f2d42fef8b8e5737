/**
 * Connections are heard in turns. Left to itself, Node's parser hands out all requests of what one read has brought, which may be
 * two thousand of each connection before anybody else has a turn. Here it is given a little at a time, and nothing while too
 * many of the connection's requests are unanswered.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** Requests of one connection that are under way at a time. */
const UNDER_WAY_MAX = 16;

/** Those of them that begin in one go. */
const TOGETHER_MAX = 8;

/** The parser is given so much at a time: some ten of the shortest requests. */
const PIECE_BYTES = 512;

const NOTHING = Buffer.alloc(0);

/** Lets those that have something go on: one of them in each turn of the event loop, so that others lose little by it. */
export class Pacer {
  readonly #endOfTurn: () => Promise<void>;
  readonly #ready = new Set<PacedInput>();
  #isGoing = false;

  constructor(endOfTurn: () => Promise<void>) {
    this.#endOfTurn = endOfTurn;
  }

  add(input: PacedInput): void {
    this.#ready.add(input);
    if (!this.#isGoing) void this.#go();
  }

  async #go(): Promise<void> {
    this.#isGoing = true;
    await this.#endOfTurn(); // never within what is being parsed
    for (const input of this.#ready) {
      this.#ready.delete(input);
      if (input.take(TOGETHER_MAX)) this.#ready.add(input); // behind those that wait
      await this.#endOfTurn();
    }
    this.#isGoing = false;
  }
}

interface Paced {
  /** Requests so far. */
  readonly begun: number;
  /** Those of them that are unanswered. */
  readonly underWay: number;
  /** The latest of them, while its body is still to come. */
  readonly receiving: IncomingMessage | undefined;
  /** Whether its last answer is on its way. */
  readonly isEnding: boolean;
}

/** What one connection has sent and the parser has not been given yet. */
export class PacedInput {
  readonly #socket: Socket & { _paused?: boolean };
  readonly #parse: (bytes: Buffer) => void;
  readonly #connection: Paced;
  readonly #pacer: Pacer;
  #waiting: Buffer = NOTHING;
  /** So many of the next bytes, at the least, belong to the body of the latest request. */
  #bodyBytesLeast = 0;

  /** `undefined` for what is no socket of a network. */
  static of(socket: Socket, connection: Paced, pacer: Pacer): PacedInput | undefined {
    // The HTTP server's own listener, which hands bytes to its parser.
    const [parse] = socket.listeners('data');
    return parse && new PacedInput(socket, parse as (bytes: Buffer) => void, connection, pacer);
  }

  private constructor(socket: Socket, parse: (bytes: Buffer) => void, connection: Paced, pacer: Pacer) {
    this.#socket = socket;
    this.#parse = parse;
    this.#connection = connection;
    this.#pacer = pacer;
    socket.off('data', parse);
    socket.on('data', (bytes: Buffer) => this.#receive(bytes));
    socket.on('resume', () => {
      // Whoever reads a body lets its socket go on; not before what waits here is heard.
      if (this.#waiting.length > 0) this.#hold();
    });
  }

  /** An answer has gone out. */
  resume(): void {
    if (this.#waiting.length > 0) this.#pacer.add(this);
  }

  /** Gives the parser what it takes to begin `requestsMax` requests, or a few more. Answers whether more could follow at once. */
  take(requestsMax: number): boolean {
    const connection = this.#connection;
    const enough = connection.begun + requestsMax;
    while (this.#waiting.length > 0) {
      const { receiving } = connection;
      // The parser of a socket that is gone may be another's already. When the last answer is out, only a body is still heard.
      if (this.#socket.destroyed || (connection.isEnding && !receiving)) {
        this.#waiting = NOTHING;
        return false;
      }
      if (connection.begun >= enough && !receiving) return true;
      // The server's own mark: the answers that wait are too many bytes. It lets the socket go on later.
      if (connection.underWay >= UNDER_WAY_MAX || this.#socket._paused) return false;
      this.#give();
    }
    if (!this.#socket._paused && !isFull(connection.receiving)) this.#socket.resume();
    return false;
  }

  #give(): void {
    const piece = this.#waiting.subarray(0, Math.max(PIECE_BYTES, this.#bodyBytesLeast));
    const { begun } = this.#connection;
    this.#waiting = this.#waiting.subarray(piece.length);
    this.#parse(piece);
    const isNew = this.#connection.begun > begun;
    const left = isNew ? declaredBytes(this.#connection.receiving) : this.#bodyBytesLeast;
    this.#bodyBytesLeast = Math.max(0, left - piece.length);
  }

  #receive(bytes: Buffer): void {
    if (this.#socket.destroyed) return;
    const isFirst = this.#waiting.length === 0;
    this.#waiting = isFirst ? bytes : Buffer.concat([this.#waiting, bytes]);
    // Whoever waits for each answer is heard at once; whoever sends more than that, in turns.
    const { underWay, receiving } = this.#connection;
    if (isFirst && (underWay === 0 || receiving)) this.take(1);
    if (this.#waiting.length > 0) this.#hold();
  }

  #hold(): void {
    this.#socket.pause();
    this.#pacer.add(this);
  }
}

/** Of the body that is coming; 0 when nothing is, or its head does not tell. */
function declaredBytes(receiving: IncomingMessage | undefined): number {
  return Number(receiving?.headers['content-length'] ?? 0);
}

/** Whether more of its body waits than fits: whoever reads it lets the socket go on. */
function isFull(receiving: IncomingMessage | undefined): boolean {
  return receiving !== undefined && receiving.readableLength >= receiving.readableHighWaterMark;
}
