/**
 * Reads connections round-robin. Node alone would parse all requests of one read, up to two thousand, before it reads
 * another connection. Here the parser gets a few bytes at a time, and none while too many requests of the connection are
 * pending.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { FairQueue } from '../../engine/admission/fair-queue.ts';
import type { ProjectId } from '../../engine/model.ts';

/** Maximum number of pending requests of one connection. */
const REQUESTS_PENDING_MAX = 16;

/** Maximum number of requests that one connection may start in one step. */
const REQUESTS_PER_STEP_MAX = 8;

/** Maximum number of connections that start their only request in one turn of the event loop. */
const STARTS_PER_TURN_MAX = 32;

/** Maximum number of bytes that are passed to the parser at once. These bytes contain at most one head. */
const CHUNK_BYTES = 512;

const END_OF_HEAD = '\r\n\r\n';

/** Maximum number of head bytes that are parsed in one step of a connection. Most heads are shorter. */
const HEAD_BYTES_PER_STEP = 2048;

const EMPTY = Buffer.alloc(0);

/** A connection or a large response that continues step by step. */
interface PacedTask {
  /** Reads or writes a bounded amount. Returns whether the task can continue at once. */
  step(): boolean;
}

/** A connection that waits to start its only request. */
interface PendingStart {
  start(): void;
}

/**
 * Divides the turns of the event loop among connections. In each turn, up to `STARTS_PER_TURN_MAX` connections without pending
 * requests start a request, and one connection with more input, or one large response, continues. So clients that wait for
 * each response are not delayed by clients that send many requests at once. Starts are shared fairly among the projects of
 * the connections: a thousand connections of one project do not delay the requests of another.
 */
export class Pacer {
  readonly #endOfTurn: () => Promise<void>;
  readonly #pendingStarts = new FairQueue<PendingStart>();
  readonly #ready = new Set<PacedTask>();
  #isRunning = false;
  /** Requests that were started in this turn. */
  #starts = 0;

  constructor(endOfTurn: () => Promise<void>) {
    this.#endOfTurn = endOfTurn;
  }

  add(task: PacedTask): void {
    this.#ready.add(task);
    this.#wake();
  }

  /**
   * Calls `start` now if this turn allows another start and no other connection waits; otherwise in a later turn.
   * `projectId`: the project of the connection's latest request; 0 before the first request.
   */
  start(input: PendingStart, projectId: ProjectId): void {
    this.#pendingStarts.push(projectId, input, 1);
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
    } while (this.#pendingStarts.length > 0 || this.#ready.size > 0);
    this.#isRunning = false;
  }

  #startNext(): void {
    const inputs: PendingStart[] = [];
    this.#starts += this.#pendingStarts.takeInto(inputs, STARTS_PER_TURN_MAX - this.#starts);
    for (const input of inputs) input.start();
  }

  #continueNext(): void {
    const [input] = this.#ready;
    if (!input) return;
    this.#ready.delete(input);
    if (input.step()) this.#ready.add(input); // at the end of the queue
  }
}

interface PacedConnection {
  /** The project of the latest request; 0: not known yet. */
  readonly projectId: ProjectId;
  /** Number of requests that have started so far. */
  readonly requestsStarted: number;
  /** Number of requests without a complete response. */
  readonly requestsPending: number;
  /** The latest request, while its body is incomplete. */
  readonly receiving: IncomingMessage | undefined;
  /** Whether a response is being written in chunks. */
  readonly isWriting: boolean;
  /** Whether the last response of the connection is being sent. */
  readonly isEnding: boolean;
}

/** Buffers the input of one connection, and passes it to the parser step by step. */
export class PacedInput {
  readonly #socket: Socket & { _paused?: boolean };
  readonly #parse: (bytes: Buffer) => void;
  readonly #finish: () => void;
  readonly #connection: PacedConnection;
  readonly #pacer: Pacer;
  #buffered: Buffer = EMPTY;
  /** Whether the connection waits to start its only request. */
  #isStarting = false;
  /** Whether the client has closed its side of the connection, but the parser has not been notified. */
  #isFinishing = false;
  /** Minimum number of the next bytes that belong to the body of the latest request. */
  #bodyBytesMin = 0;

  /** Returns `undefined` if the socket is not a network socket. */
  static of(socket: Socket, connection: PacedConnection, pacer: Pacer): PacedInput | undefined {
    // The HTTP server's own listeners: one passes bytes to the parser, the other the end of the input.
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
      // A client may close its side of the connection while its last requests are still buffered.
      if (this.#buffered.length === 0) this.#finishInput();
      else this.#pacer.add(this);
    });
    socket.on('resume', () => {
      // Reading a body resumes its socket. Buffered input must be parsed first.
      if (this.#buffered.length > 0) this.#pause();
    });
  }

  /** Call this when a response was sent. */
  resume(): void {
    if (this.#buffered.length > 0) this.#pacer.add(this);
  }

  step(): boolean {
    return this.#parseUpTo(REQUESTS_PER_STEP_MAX);
  }

  start(): void {
    this.#isStarting = false;
    this.#parseOne();
  }

  #parseOne(): void {
    this.#parseUpTo(1);
    if (this.#buffered.length > 0) this.#pause();
  }

  /**
   * Parses input until `requestsMax` requests have started, or `HEAD_BYTES_PER_STEP` bytes of heads are parsed. Returns whether
   * the connection can continue at once.
   */
  #parseUpTo(requestsMax: number): boolean {
    const connection = this.#connection;
    const enough = connection.requestsStarted + requestsMax;
    let headBytes = 0;
    while (this.#buffered.length > 0) {
      const { receiving } = connection;
      // The parser of a closed socket may already serve another socket. After the last response, only the rest of a body is
      // parsed.
      if (this.#socket.destroyed || (connection.isEnding && !receiving)) {
        this.#buffered = EMPTY;
        return false;
      }
      if ((connection.requestsStarted >= enough || headBytes >= HEAD_BYTES_PER_STEP) && !receiving) return true;
      // The server sets `_paused` while too many bytes of responses are buffered, and later resumes the socket.
      if (connection.requestsPending >= REQUESTS_PENDING_MAX || connection.isWriting || this.#socket._paused)
        return false;
      const parsed = this.#parseChunk();
      if (!receiving) headBytes += parsed;
    }
    if (this.#isFinishing) this.#finishInput();
    else if (!this.#socket._paused && !isFull(connection.receiving)) this.#socket.resume();
    return false;
  }

  /** Ends the input: the server closes the connection after the latest response, or ends an incomplete request. */
  #finishInput(): void {
    this.#isFinishing = false;
    if (!this.#socket.destroyed) this.#finish();
  }

  /** Passes one chunk to the parser. Returns its length. */
  #parseChunk(): number {
    const { requestsStarted: begun, receiving } = this.#connection;
    const headBytes = receiving ? undefined : headLength(this.#buffered);
    const chunk = this.#buffered.subarray(0, headBytes ?? (this.#bodyBytesMin || CHUNK_BYTES));
    this.#buffered = this.#buffered.subarray(chunk.length);
    this.#parse(chunk);
    const isNew = this.#connection.requestsStarted > begun;
    const left = isNew ? declaredBytes(this.#connection.receiving) : this.#bodyBytesMin;
    this.#bodyBytesMin = isNew && headBytes !== undefined ? left : Math.max(0, left - chunk.length);
    return chunk.length;
  }

  #receive(bytes: Buffer): void {
    if (this.#socket.destroyed) return;
    const isFirst = this.#buffered.length === 0;
    this.#buffered = isFirst ? bytes : Buffer.concat([this.#buffered, bytes]);
    const { requestsPending: underWay, receiving } = this.#connection;
    if (this.#isStarting) this.#socket.pause();
    else if (isFirst && receiving) this.#parseOne();
    else if (isFirst && underWay === 0) this.#requestStart();
    else this.#pause();
  }

  #requestStart(): void {
    this.#isStarting = true;
    this.#pacer.start(this, this.#connection.projectId);
  }

  #pause(): void {
    this.#socket.pause();
    this.#pacer.add(this);
  }
}

/** Length of the first head, so that the parser starts one request at a time; `undefined` if the head exceeds a chunk. */
function headLength(bytes: Buffer): number | undefined {
  const end = bytes.subarray(0, CHUNK_BYTES).indexOf(END_OF_HEAD);
  return end === -1 ? undefined : end + END_OF_HEAD.length;
}

/** Length of the body that is arriving; 0 if there is no body, or if the head has no length. */
function declaredBytes(receiving: IncomingMessage | undefined): number {
  return Number(receiving?.headers['content-length'] ?? 0);
}

/** Whether the buffer of the body is full. Reading the body resumes the socket. */
function isFull(receiving: IncomingMessage | undefined): boolean {
  return receiving !== undefined && receiving.readableLength >= receiving.readableHighWaterMark;
}
