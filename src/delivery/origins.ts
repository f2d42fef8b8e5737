/**
 * Manages the connections of deliveries.
 *
 * Each origin (scheme, host, port) has a few connections of its own, so that a slow or dead endpoint can only exhaust its
 * own (P9). A connection is one undici `Client` with one socket and one request at a time. Unlike undici's `Pool`,
 * this knows whether a socket was used before, and can close one that is still connecting. Both are needed here, at no
 * extra cost per request. The most recently used connection is reused first, so that the others can time out.
 */
import type { Socket } from 'node:net';
import { Client } from 'undici';
import type { ProjectId } from '../engine/model.ts';
import { AnswerGate, SLICE_BYTES } from './answers/answer-gate.ts';
import type { Connector } from './connector.ts';

export interface OriginsOptions {
  connector: Connector;
  connectionsPerOriginMax: number;
  /** Maximum number of origins with idle connections; the least recently used ones lose theirs first. */
  originsMax: number;
  /** Maximum size of a response head, accurate to a few KiB. */
  responseHeaderBytesMax: number;
}

/** An attempt that requests a connection. */
export interface Lessee {
  /** Called once, possibly before `lease` returns; not after `withdraw`. */
  onConnection(connection: Connection): void;
}

/** One `Client` and its socket. It belongs to one lessee at a time, which calls `release` or `discard` once. */
export class Connection {
  readonly client: Client;
  readonly #line: OriginLine;
  /** Complete responses on the current socket. Above 0, the peer may be closing it at this moment. */
  answersRead = 0;
  leased = true;
  /** The project of the current attempt, set by each lessee. */
  projectId: ProjectId = 0;
  readonly #gate: AnswerGate;
  #socket: Socket | undefined;
  #discarded = false;

  constructor(line: OriginLine, { connector, responseHeaderBytesMax }: OriginsOptions) {
    this.#line = line;
    this.#gate = new AnswerGate(responseHeaderBytesMax);
    this.client = new Client(line.origin, {
      pipelining: 1,
      allowH2: false,
      // The attempt's own deadline covers these.
      headersTimeout: 0,
      bodyTimeout: 0,
      // Shorter than the 5 s after which common servers close connections. A server's own hint is respected, up to a minute.
      keepAliveTimeout: 4_000,
      keepAliveMaxTimeout: 60_000,
      // The filter limits heads more strictly, so only trailers can reach this limit.
      maxHeaderSize: responseHeaderBytesMax + 2 * SLICE_BYTES,
      connect: (options, callback) => {
        this.answersRead = 0;
        this.#socket = connector({ ...options, projectId: this.projectId }, (error, socket) => {
          if (error !== null || socket === null) {
            callback(error ?? new Error('no socket'), null);
            return;
          }
          this.#gate.attach(socket);
          callback(null, socket);
        });
        // Discarded while the connect was pending.
        if (this.#discarded) this.#socket?.destroy();
      },
    });
    // A leased client reconnects or fails its request by itself. An idle one is useless.
    this.client.on('disconnect', () => {
      if (!this.leased) this.discard();
    });
  }

  /** Call it when the request is written. */
  expectHead(): void {
    this.#gate.expectHead();
  }

  /** Call it when the head of the final response was read. */
  headRead(): void {
    this.#gate.headRead();
  }

  /** Returns the connection after a complete response; closes it if the head of the response was repaired. */
  release(): void {
    if (this.#gate.wasRepaired) return this.discard();
    this.answersRead += 1;
    this.#line.takeBack(this);
  }

  /** Closes the socket in any state, and frees its capacity. */
  discard(): void {
    if (this.#discarded) return;
    this.#line.forget(this);
    this.close();
  }

  /** Closes the connection and leases a new one in exchange, ahead of waiting lessees. */
  replace(): Connection {
    const fresh = this.#line.exchange(this);
    this.close();
    return fresh;
  }

  close(): void {
    this.#discarded = true;
    this.client.destroy(ignore);
    this.#socket?.destroy();
  }
}

/** The connections of one origin and the attempts that wait for one. */
class OriginLine {
  readonly origin: string;
  readonly #options: OriginsOptions;
  readonly #onEmpty: (line: OriginLine) => void;
  readonly #open = new Set<Connection>();
  readonly #idle: Connection[] = [];
  /** In order of arrival. A Set, so that a lessee can withdraw in constant time. */
  readonly #waiting = new Set<Lessee>();

  constructor(origin: string, options: OriginsOptions, onEmpty: (line: OriginLine) => void) {
    this.origin = origin;
    this.#options = options;
    this.#onEmpty = onEmpty;
  }

  get connections(): number {
    return this.#open.size;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  get isIdle(): boolean {
    return this.#idle.length === this.#open.size && this.#waiting.size === 0;
  }

  lease(lessee: Lessee): void {
    const connection = this.#idle.pop();
    if (connection !== undefined) {
      connection.leased = true;
      lessee.onConnection(connection);
    } else if (this.#open.size < this.#options.connectionsPerOriginMax && this.#waiting.size === 0) {
      lessee.onConnection(this.#connect());
    } else {
      this.#waiting.add(lessee);
    }
  }

  withdraw(lessee: Lessee): void {
    this.#waiting.delete(lessee);
  }

  takeBack(connection: Connection): void {
    const next = this.#nextWaiting();
    if (next !== undefined) {
      next.onConnection(connection);
      return;
    }
    connection.leased = false;
    this.#idle.push(connection);
  }

  forget(connection: Connection): void {
    this.#remove(connection);
    // Deferred: if each waiting lessee failed at once, the recursion could overflow the stack.
    if (this.#waiting.size > 0) queueMicrotask(() => this.#serveWaiting());
    else if (this.#open.size === 0) this.#onEmpty(this);
  }

  exchange(connection: Connection): Connection {
    this.#remove(connection);
    return this.#connect();
  }

  /** Closes idle connections. The origin is removed with its last connection. */
  closeIdle(): void {
    for (const connection of [...this.#idle]) connection.discard();
  }

  #connect(): Connection {
    const connection = new Connection(this, this.#options);
    this.#open.add(connection);
    return connection;
  }

  #remove(connection: Connection): void {
    this.#open.delete(connection);
    const at = connection.leased ? -1 : this.#idle.indexOf(connection);
    if (at !== -1) this.#idle.splice(at, 1);
  }

  #serveWaiting(): void {
    while (this.#open.size < this.#options.connectionsPerOriginMax) {
      const next = this.#nextWaiting();
      if (next === undefined) break;
      next.onConnection(this.#connect());
    }
    if (this.#open.size === 0 && this.#waiting.size === 0) this.#onEmpty(this);
  }

  #nextWaiting(): Lessee | undefined {
    const [next] = this.#waiting;
    if (next !== undefined) this.#waiting.delete(next);
    return next;
  }
}

/** All origins in use. An origin without connections takes no memory. */
export class Origins {
  readonly #options: OriginsOptions;
  /** Least recently used first once the maximum is reached; before that, in order of creation, since reordering a map costs. */
  readonly #lines = new Map<string, OriginLine>();
  #latest: OriginLine | undefined;

  constructor(options: OriginsOptions) {
    this.#options = options;
  }

  /** Gives `lessee` a connection to `origin`, now or when one is free. */
  lease(origin: string, lessee: Lessee): void {
    this.#lineOf(origin).lease(lessee);
  }

  /** Removes a waiting lessee; no effect once it has a connection. */
  withdraw(origin: string, lessee: Lessee): void {
    this.#lines.get(origin)?.withdraw(lessee);
  }

  stats(): { origins: number; connections: number; waiting: number } {
    let connections = 0;
    let waiting = 0;
    for (const line of this.#lines.values()) {
      connections += line.connections;
      waiting += line.waiting;
    }
    return { origins: this.#lines.size, connections, waiting };
  }

  closeIdle(): void {
    for (const line of [...this.#lines.values()]) line.closeIdle();
  }

  #lineOf(origin: string): OriginLine {
    if (this.#latest?.origin === origin) return this.#latest;
    const isFull = this.#lines.size >= this.#options.originsMax;
    let line = this.#lines.get(origin);
    if (line === undefined) {
      line = new OriginLine(origin, this.#options, (empty) => this.#drop(empty));
      if (isFull) this.#evict();
      this.#lines.set(origin, line);
    } else if (isFull) {
      this.#lines.delete(origin);
      this.#lines.set(origin, line);
    }
    this.#latest = line;
    return line;
  }

  #drop(line: OriginLine): void {
    if (this.#lines.get(line.origin) === line) this.#lines.delete(line.origin);
    if (this.#latest === line) this.#latest = undefined;
  }

  /** Closes one idle origin to free its entry. Origins with attempts are kept; the limit on attempts in flight bounds their number. */
  #evict(): void {
    for (const line of this.#lines.values()) {
      if (!line.isIdle) continue;
      line.closeIdle();
      return;
    }
  }
}

function ignore(): void {}
