/**
 * Reads connections in turns. By itself, Node's parser hands out all requests of one read, up to two thousand, before
 * another connection has its turn. Here the parser gets a few bytes at a time, and none while too many requests of the
 * connection are unanswered.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** Requests of one connection that may be unanswered at a time. */
const REQUESTS_PENDING_MAX = 16;

/** Requests of one connection that may begin in one turn. */
const REQUESTS_PER_STEP_MAX = 8;

/** Connections that may start their only request in one turn of the event loop. Others wait for a later turn, first come, first served. */
const STARTS_PER_TURN_MAX = 32;

/** Bytes given to the parser at a time, and no more than one head. */
const CHUNK_BYTES = 512;

const END_OF_HEAD = '\r\n\r\n';

/** Bytes of heads that the parser is given in one turn of a connection: most requests have less. */
const HEAD_BYTES_PER_STEP = 2048;

const NOTHING = Buffer.alloc(0);

/** Reads or writes something when it is its turn. Returns whether it needs another turn at once. */
interface PacedTask {
  step(): boolean;
}

/** Starts a request. */
interface PendingStart {
  start(): void;
}

/**
 * Divides the turns of the event loop. In each turn up to `STARTS_MAX` connections start a request when they have none
 * unanswered, in the order in which they asked; and one connection with more input, or one large response, continues. So
 * clients that wait for each response do not wait behind those that flood, and none of them is overtaken by later ones.
 */
export class Pacer {
  readonly #endOfTurn: () => Promise<void>;
  readonly #starting = new Set<PendingStart>();
  readonly #ready = new Set<PacedTask>();
  #isRunning = false;
  /** Requests that were started in this turn. */
  #starts = 0;

  constructor(endOfTurn: () => Promise<void>) {
    this.#endOfTurn = endOfTurn;
  }

  add(input: PacedTask): void {
    this.#ready.add(input);
    this.#wake();
  }

  /** Calls `start` now if the turn allows another request and nobody waits to start one; otherwise in a later turn. */
  start(input: PendingStart): void {
    this.#starting.add(input);
    this.#startNext();
    this.#wake();
  }

  #wake(): void {
    if (!this.#isRunning) void this.#run();
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    do {
      await this.#endOfTurn(); // never in the middle of parsing
      this.#starts = 0;
      this.#startNext();
      this.#continueNext();
    } while (this.#starting.size > 0 || this.#ready.size > 0);
    this.#isRunning = false;
  }

  #startNext(): void {
    for (const input of this.#starting) {
      if (this.#starts >= STARTS_PER_TURN_MAX) return;
      this.#starting.delete(input);
      this.#starts += 1;
      input.start();
    }
  }

  #continueNext(): void {
    const [input] = this.#ready;
    if (!input) return;
    this.#ready.delete(input);
    if (input.step()) this.#ready.add(input); // at the end of the queue
  }
}

interface PacedConnection {
  /** Requests that have begun so far. */
  readonly requestsStarted: number;
  /** Requests that are unanswered. */
  readonly requestsPending: number;
  /** The latest request, while its body is incomplete. */
  readonly receiving: IncomingMessage | undefined;
  /** Whether an answer is being written in pieces. */
  readonly isWriting: boolean;
  /** Whether the last answer of the connection is being sent. */
  readonly isEnding: boolean;
}

/** Input of one connection that the parser has not been given yet. */
export class PacedInput {
  readonly #socket: Socket & { _paused?: boolean };
  readonly #parse: (bytes: Buffer) => void;
  readonly #finish: () => void;
  readonly #connection: PacedConnection;
  readonly #pacer: Pacer;
  #waiting: Buffer = NOTHING;
  /** Whether it waits to start its only request. */
  #isStarting = false;
  /** Whether the client has closed its side, and the parser has not been told so. */
  #isFinishing = false;
  /** Lower bound of the next bytes that belong to the body of the latest request. */
  #bodyBytesLeast = 0;

  /** `undefined` for a socket that is no network socket. */
  static of(socket: Socket, connection: PacedConnection, pacer: Pacer): PacedInput | undefined {
    // The HTTP server's own listeners, which hand bytes to its parser and tell it of their end.
    const parse = socket.listeners('data').at(-1) as ((bytes: Buffer) => void) | undefined;
    const finish = socket.listeners('end').at(-1) as (() => void) | undefined;
    return parse && finish && new PacedInput(socket, { parse, finish }, connection, pacer);
  }

  private constructor(
    socket: Socket,
    { parse, finish }: { parse: (bytes: Buffer) => void; finish: () => void },
    connection: PacedConnection,
    pacer: Pacer,
  ) {
    this.#socket = socket;
    this.#parse = parse;
    this.#finish = finish;
    this.#connection = connection;
    this.#pacer = pacer;
    socket.off('data', parse).off('end', finish);
    socket.on('data', (bytes: Buffer) => this.#receive(bytes));
    socket.on('end', () => {
      this.#isFinishing = true;
      // The last requests of a client that has closed its side may still wait here.
      if (this.#waiting.length === 0) this.#tellEnd();
      else this.#pacer.add(this);
    });
    socket.on('resume', () => {
      // Reading a body resumes its socket. Input that waits here must be parsed first.
      if (this.#waiting.length > 0) this.#hold();
    });
  }

  /** Call it when an answer was sent. */
  resume(): void {
    if (this.#waiting.length > 0) this.#pacer.add(this);
  }

  step(): boolean {
    return this.#take(REQUESTS_PER_STEP_MAX);
  }

  start(): void {
    this.#isStarting = false;
    this.#takeOne();
  }

  #takeOne(): void {
    this.#take(1);
    if (this.#waiting.length > 0) this.#hold();
  }

  /**
   * Gives the parser enough bytes to begin `requestsMax` requests, and no more than 2 KiB of a head without an end. Returns
   * whether more could follow at once.
   */
  #take(requestsMax: number): boolean {
    const connection = this.#connection;
    const enough = connection.requestsStarted + requestsMax;
    let headBytes = 0;
    while (this.#waiting.length > 0) {
      const { receiving } = connection;
      // The parser of a closed socket may already serve another socket. After the last answer, only the rest of a body
      // is parsed.
      if (this.#socket.destroyed || (connection.isEnding && !receiving)) {
        this.#waiting = NOTHING;
        return false;
      }
      if ((connection.requestsStarted >= enough || headBytes >= HEAD_BYTES_PER_STEP) && !receiving) return true;
      // `_paused` is set by the server while too many bytes of answers wait. It resumes the socket later.
      if (connection.requestsPending >= REQUESTS_PENDING_MAX || connection.isWriting || this.#socket._paused)
        return false;
      const given = this.#give();
      if (!receiving) headBytes += given;
    }
    if (this.#isFinishing) this.#tellEnd();
    else if (!this.#socket._paused && !isFull(connection.receiving)) this.#socket.resume();
    return false;
  }

  /** The server then closes the connection after the answer to the latest request, or ends an incomplete request. */
  #tellEnd(): void {
    this.#isFinishing = false;
    if (!this.#socket.destroyed) this.#finish();
  }

  /** Returns the number of bytes given. */
  #give(): number {
    const { requestsStarted: begun, receiving } = this.#connection;
    const headBytes = receiving ? undefined : headLength(this.#waiting);
    const piece = this.#waiting.subarray(0, headBytes ?? (this.#bodyBytesLeast || CHUNK_BYTES));
    this.#waiting = this.#waiting.subarray(piece.length);
    this.#parse(piece);
    const isNew = this.#connection.requestsStarted > begun;
    const left = isNew ? declaredBytes(this.#connection.receiving) : this.#bodyBytesLeast;
    this.#bodyBytesLeast = isNew && headBytes !== undefined ? left : Math.max(0, left - piece.length);
    return piece.length;
  }

  #receive(bytes: Buffer): void {
    if (this.#socket.destroyed) return;
    const isFirst = this.#waiting.length === 0;
    this.#waiting = isFirst ? bytes : Buffer.concat([this.#waiting, bytes]);
    const { requestsPending: underWay, receiving } = this.#connection;
    if (this.#isStarting) this.#socket.pause();
    else if (isFirst && receiving) this.#takeOne();
    else if (isFirst && underWay === 0) this.#startInTurn();
    else this.#hold();
  }

  #startInTurn(): void {
    this.#isStarting = true;
    this.#pacer.start(this);
  }

  #hold(): void {
    this.#socket.pause();
    this.#pacer.add(this);
  }
}

/** Bytes up to the end of the first head: otherwise the parser would begin many short requests at once. `undefined`: too many. */
function headLength(bytes: Buffer): number | undefined {
  const end = bytes.subarray(0, CHUNK_BYTES).indexOf(END_OF_HEAD);
  return end === -1 ? undefined : end + END_OF_HEAD.length;
}

/** Length of the body that is arriving; 0 when there is none, or when its head does not give a length. */
function declaredBytes(receiving: IncomingMessage | undefined): number {
  return Number(receiving?.headers['content-length'] ?? 0);
}

/** Whether the buffer of its body is full. Reading the body resumes the socket. */
function isFull(receiving: IncomingMessage | undefined): boolean {
  return receiving !== undefined && receiving.readableLength >= receiving.readableHighWaterMark;
}
