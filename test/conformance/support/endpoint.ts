/** An endpoint on loopback: records its requests, and sends the responses that a statement has set. */
import http from 'node:http';
import type { Millis } from '../../../src/engine/model.ts';
import type { Clock } from '../../../src/engine/ports.ts';
import { eventually } from '../../support/eventually.ts';
import { listen } from '../../support/listen.ts';

export interface Received {
  method: string;
  /** Path and query, byte for byte. */
  target: string;
  path: string;
  /** Names in lower case. */
  headers: http.IncomingHttpHeaders;
  body: Buffer;
  /** The time of the request by the server's clock. */
  atMs: Millis;
}

export interface Reply {
  /** Default: 200. */
  status?: number;
  headers?: http.OutgoingHttpHeaders;
  body?: string | Buffer;
}

export class Endpoint {
  readonly #server: http.Server;
  readonly #clock: Clock;
  readonly #received: Received[] = [];
  readonly #repliesByPath = new Map<string, Reply[]>();
  readonly #heldByPath = new Map<string, http.ServerResponse[]>();
  origin = '';
  #paths = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#server = http.createServer((request, response) => {
      const pieces: Buffer[] = [];
      request.on('data', (piece: Buffer) => pieces.push(piece));
      request.on('end', () => this.#take(request, response, Buffer.concat(pieces)));
    });
  }

  async open(): Promise<void> {
    this.origin = await listen(this.#server);
  }

  /** Returns a path that has received no request yet. */
  newPath(): string {
    this.#paths += 1;
    return `/path-${this.#paths}`;
  }

  /** The nth request to `path` gets the nth reply, further requests the last reply. Without replies: 200, empty. */
  replies(path: string, ...replies: Reply[]): void {
    this.#repliesByPath.set(path, replies);
  }

  /** Requests to `path` get no response until the returned function is called, which responds to the oldest request. */
  hold(path: string): (reply?: Reply) => void {
    const held: http.ServerResponse[] = [];
    this.#heldByPath.set(path, held);
    return (reply = {}) => {
      const response = held.shift();
      if (response === undefined) throw new Error(`no request to ${path} is waiting`);
      respond(response, reply);
    };
  }

  /** The requests to `path` so far, in order. */
  to(path: string): Received[] {
    return this.#received.filter((received) => received.path === path);
  }

  /** Resolves to the `nth` request to `path` (from 1) when it arrives. */
  arrival(path: string, nth = 1): Promise<Received> {
    return eventually(
      () => `request ${nth} to ${path}; there are ${this.to(path).length}`,
      () => this.to(path)[nth - 1],
    );
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #take({ method = '', url: target = '', headers }: http.IncomingMessage, response: http.ServerResponse, body: Buffer) {
    const path = target.split('?', 1)[0] ?? target;
    this.#received.push({ method, target, path, headers, body, atMs: this.#clock.nowMs() });
    const held = this.#heldByPath.get(path);
    if (held !== undefined) {
      held.push(response);
      return;
    }
    const replies = this.#repliesByPath.get(path) ?? [];
    const reply = replies[Math.min(this.to(path).length, replies.length) - 1] ?? {};
    respond(response, reply);
  }
}

function respond(response: http.ServerResponse, { status = 200, headers, body }: Reply): void {
  response.writeHead(status, headers).end(body);
}
