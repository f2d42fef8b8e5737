/** A TCP proxy between a worker and its database that delays, stalls and cuts connections on demand. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, Socket } from 'node:net';
import { CommitWatch } from './postgres/commit-watch.ts';

/** `reset`: an RST, as from a machine that restarted. `end`: a FIN, as from a server that closes. */
export type Cut = 'reset' | 'end';

// With more bytes than this in transit, the sender has to wait.
const IN_TRANSIT_BYTES_MAX = 1024 * 1024;

/** Listens on a port of 127.0.0.1 and forwards to `target`, another port of 127.0.0.1. */
export class TcpProxy {
  /** The delay in each direction of bytes that arrive from now on. */
  delayMs = 0;
  readonly #server: Server;
  readonly #links = new Set<Link>();
  #target: number;
  #isStalled = false;
  /** Each entry cuts one of the next commits. */
  readonly #cuts: CutAtCommit[] = [];

  private constructor(server: Server, target: number) {
    this.#server = server;
    this.#target = target;
    server.on('connection', (client: Socket) => {
      const link = new Link(client, this.#target, {
        delayMs: () => this.delayMs,
        isStalled: () => this.#isStalled,
        takeCut: () => this.#cuts.shift(),
      });
      this.#links.add(link);
      link.onClose(() => this.#links.delete(link));
    });
  }

  static async open(target: number): Promise<TcpProxy> {
    const server = createServer({ allowHalfOpen: true });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new TcpProxy(server, target);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** `url` with this proxy's port. */
  through(url: string): string {
    const changed = new URL(url);
    changed.port = String(this.port);
    return changed.href;
  }

  get connections(): number {
    return this.#links.size;
  }

  /** Forwards new connections to another port. Existing connections are unchanged. */
  pointTo(target: number): void {
    this.#target = target;
  }

  /** Makes all connections half-open: accepts all bytes and closes, but forwards none of them until `flow`. */
  stall(): void {
    this.#isStalled = true;
  }

  flow(): void {
    this.#isStalled = false;
    for (const link of this.#links) link.move();
  }

  /** Cuts every existing connection on both sides. */
  cutAll(cut: Cut = 'reset'): void {
    for (const link of this.#links) link.cut(cut);
  }

  /**
   * Cuts the next COMMIT of any connection, so that the client gets no response. `before`: resets the connection without
   * forwarding the COMMIT, so that the server rolls back. `after`: forwards the COMMIT first. Resolves after the cut.
   * `lastWords` are sent to the client before its connection ends.
   */
  cutAtCommit(when: 'before' | 'after', lastWords?: Buffer): Promise<void> {
    return new Promise((done) => this.#cuts.push({ when, done, lastWords }));
  }

  async close(): Promise<void> {
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.cutAll();
    await closed;
  }
}

interface CutAtCommit {
  when: 'before' | 'after';
  lastWords: Buffer | undefined;
  done: () => void;
}

interface ProxyState {
  delayMs(): number;
  isStalled(): boolean;
  takeCut(): CutAtCommit | undefined;
}

/** A client's connection with its own connection to the server. */
class Link {
  readonly #client: Socket;
  readonly #server = new Socket({ allowHalfOpen: true });
  readonly #target: number;
  readonly #conditions: ProxyState;
  readonly #watch = new CommitWatch();
  readonly #directions: readonly Direction[];
  #isConnected = false;

  constructor(client: Socket, target: number, conditions: ProxyState) {
    this.#client = client;
    this.#target = target;
    this.#conditions = conditions;
    const answer = (chunk: Buffer) => void client.write(chunk);
    this.#directions = [
      new Direction(client, this.#server, conditions, (chunk) => this.#forward(chunk)),
      new Direction(this.#server, client, conditions, answer),
    ];
    client.setNoDelay(true);
    this.#server.setNoDelay(true);
    this.move();
  }

  onClose(closed: () => void): void {
    const sockets = [this.#client, this.#server];
    for (const socket of sockets) {
      socket.once('close', () => {
        if (sockets.every((each) => each.closed)) closed();
      });
    }
  }

  /** Forwards all bytes and closes that are due. */
  move(): void {
    if (!this.#isConnected && !this.#conditions.isStalled()) {
      this.#isConnected = true;
      this.#server.connect(this.#target, '127.0.0.1');
    }
    for (const line of this.#directions) line.move();
  }

  cut(cut: Cut): void {
    for (const socket of [this.#client, this.#server]) {
      if (cut === 'reset') reset(socket);
      else socket.end(() => socket.destroy());
    }
  }

  #forward(chunk: Buffer): void {
    for (const end of this.#watch.feed(chunk)) {
      const cut = this.#conditions.takeCut();
      if (cut === undefined) continue;
      if (cut.lastWords) this.#client.end(cut.lastWords);
      else reset(this.#client);
      if (cut.when === 'before') reset(this.#server);
      // The server's connection is ended and read to the end instead of reset: a reset might overtake the commit.
      else this.#server.end(chunk.subarray(0, end));
      cut.done();
      return;
    }
    this.#server.write(chunk);
  }
}

/** One direction of a link: forwards in order, each chunk after its delay. */
class Direction {
  readonly #source: Socket;
  readonly #sink: Socket;
  readonly #conditions: ProxyState;
  readonly #forward: (chunk: Buffer) => void;
  readonly #queue: { what: Buffer | 'end' | 'reset'; dueMs: number }[] = [];
  #queuedBytes = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(source: Socket, sink: Socket, conditions: ProxyState, forward: (chunk: Buffer) => void) {
    this.#source = source;
    this.#sink = sink;
    this.#conditions = conditions;
    this.#forward = forward;
    source.on('data', (chunk: Buffer) => this.#enqueue(chunk));
    source.once('end', () => this.#enqueue('end'));
    source.once('error', () => this.#enqueue('reset'));
    sink.on('drain', () => this.move());
    sink.once('close', () => clearTimeout(this.#timer));
  }

  move(): void {
    clearTimeout(this.#timer);
    while (!this.#conditions.isStalled()) {
      const first = this.#queue[0];
      if (first === undefined) break;
      const waitMs = first.dueMs - performance.now();
      if (waitMs > 0) {
        this.#timer = setTimeout(() => this.move(), waitMs);
        break;
      }
      this.#queue.shift();
      this.#dequeue(first.what);
    }
    if (this.#queuedBytes + this.#sink.writableLength < IN_TRANSIT_BYTES_MAX) this.#source.resume();
  }

  #enqueue(what: Buffer | 'end' | 'reset'): void {
    this.#queue.push({ what, dueMs: performance.now() + this.#conditions.delayMs() });
    if (what instanceof Buffer) this.#queuedBytes += what.length;
    if (this.#queuedBytes + this.#sink.writableLength >= IN_TRANSIT_BYTES_MAX) this.#source.pause();
    this.move();
  }

  #dequeue(what: Buffer | 'end' | 'reset'): void {
    if (what instanceof Buffer) this.#queuedBytes -= what.length;
    if (this.#sink.destroyed || this.#sink.writableEnded) return; // the connection was cut before `what` was due
    if (what === 'end') this.#sink.end();
    else if (what === 'reset') reset(this.#sink);
    else this.#forward(what);
  }
}

/** Only closes a socket that has sent its end: a reset would leave a request that keeps the process alive. */
function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
