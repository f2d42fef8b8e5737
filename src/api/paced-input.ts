/**
 * Connections that send many requests at once are heard in turns. Node's parser hands out all requests of what it has read,
 * which may be a thousand of each connection before anybody else has a turn; here it is given a little at a time, and nothing
 * while too many of the connection's requests are unanswered.
 */
import type { Socket } from 'node:net';
import type { Clock } from '../engine/ports.ts';
import { Slices } from './slices.ts';

/** Requests of one connection that are under way at a time. */
const UNDER_WAY_MAX = 16;

/** Those of them that begin in one go. */
const TOGETHER_MAX = 8;

/** The parser is given so much at a time: some ten of the shortest requests. */
const PIECE_BYTES = 512;

const NOTHING = Buffer.alloc(0);

/** Lets those that have something go on, one after the other, for a slice of each turn of the event loop. */
export class Pacer {
  readonly #clock: Clock;
  readonly #endOfTurn: () => Promise<void>;
  readonly #ready = new Set<PacedInput>();
  #isGoing = false;

  constructor(clock: Clock, endOfTurn: () => Promise<void>) {
    this.#clock = clock;
    this.#endOfTurn = endOfTurn;
  }

  add(input: PacedInput): void {
    this.#ready.add(input);
    if (!this.#isGoing) void this.#go();
  }

  async #go(): Promise<void> {
    this.#isGoing = true;
    const slices = new Slices(this.#clock, this.#endOfTurn);
    await slices.next(); // never within what is being parsed
    while (this.#ready.size > 0) {
      for (const input of this.#ready) {
        this.#ready.delete(input);
        if (input.take()) this.#ready.add(input); // behind those that wait
        if (slices.isOver) break;
      }
      await slices.next();
    }
    this.#isGoing = false;
  }
}

interface Paced {
  /** Requests that are unanswered and have had their turn. */
  readonly underWay: number;
  readonly isEnding: boolean;
}

/** What one connection has sent and the parser has not been given yet. */
export class PacedInput {
  readonly #socket: Socket & { _paused?: boolean };
  readonly #parse: (bytes: Buffer) => void;
  readonly #connection: Paced;
  readonly #pacer: Pacer;
  #waiting: Buffer = NOTHING;
  /** Requests that the parser handed out before it was given little at a time, and that wait for their turn. */
  readonly #turns: (() => void)[] = [];

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

  get requestsWaiting(): number {
    return this.#turns.length;
  }

  /** For a request that was handed out: `undefined` when its turn is now. */
  turn(): Promise<void> | undefined {
    if (this.#turns.length === 0 && this.#connection.underWay <= UNDER_WAY_MAX) return undefined;
    this.#pacer.add(this);
    return new Promise((resolve) => this.#turns.push(resolve));
  }

  /** An answer has gone out. */
  goOn(): void {
    if (this.#waiting.length > 0 || this.#turns.length > 0) this.#pacer.add(this);
  }

  /** Gives the parser what it takes to begin another request. Answers whether more could follow at once. */
  take(): boolean {
    if (this.#socket.destroyed) this.#drop();
    const before = this.#connection.underWay;
    while (this.#turns.length > 0) {
      if (this.#connection.underWay >= UNDER_WAY_MAX && !this.#connection.isEnding) return false;
      this.#turns.shift()?.();
      if (this.#connection.underWay >= before + TOGETHER_MAX) return true;
    }
    while (this.#waiting.length > 0) {
      // The parser of a socket that is gone may be another's already.
      if (this.#socket.destroyed || this.#connection.isEnding) this.#waiting = NOTHING;
      // The server's own mark: the answers that wait are too many bytes. It lets the socket go on later.
      if (this.#connection.underWay >= UNDER_WAY_MAX || this.#socket._paused) return false;
      const piece = this.#waiting.subarray(0, PIECE_BYTES);
      this.#waiting = this.#waiting.subarray(piece.length);
      if (piece.length > 0) this.#parse(piece);
      if (this.#connection.underWay > before) return this.#waiting.length > 0 || this.#letGo();
    }
    return this.#letGo();
  }

  #drop(): void {
    this.#waiting = NOTHING;
    this.#turns.length = 0;
  }

  #receive(bytes: Buffer): void {
    if (this.#socket.destroyed) return;
    const isHeld = this.#waiting.length > 0 || this.#turns.length > 0 || this.#socket._paused === true;
    if (!isHeld && this.#connection.underWay === 0 && bytes.length <= PIECE_BYTES) {
      this.#parse(bytes);
      return;
    }
    this.#waiting = this.#waiting.length === 0 ? bytes : Buffer.concat([this.#waiting, bytes]);
    this.#hold();
  }

  #hold(): void {
    this.#socket.pause();
    this.#pacer.add(this);
  }

  #letGo(): false {
    if (!this.#socket._paused) this.#socket.resume();
    return false;
  }
}
