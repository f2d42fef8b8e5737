/** The listener: Node's HTTP server with our bounds, and how it begins and ends. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import {
  type AddressInfo,
  createServer as createPlainServer,
  type ListenOptions,
  type Server as PlainServer,
} from 'node:net';
import { clientErrorHandler } from './connection-errors.ts';
import type { Connections } from './connections.ts';
import { type ApiLimits, HEADER_LINES_MAX, REQUESTS_PER_SOCKET_MAX, TARGET_BYTES_MAX } from './limits.ts';

export interface ListenerOptions {
  limits: Readonly<ApiLimits>;
  connections: Connections;
  /** Answers a request. Never throws. */
  serve: (request: IncomingMessage, response: ServerResponse) => void;
  /** Called when the last request is answered. */
  ended: () => Promise<void>;
}

export class Listener {
  readonly server: Server;
  /** They hand their connections to `server`. */
  readonly #others: PlainServer[] = [];
  readonly #ended: () => Promise<void>;
  #closing: Promise<void> | undefined;

  constructor({ limits, connections, serve, ended }: ListenerOptions) {
    this.server = createBounded(limits);
    this.#ended = ended;
    this.server.on('request', (request, response) => {
      // Answered all the same: the engine says when it takes no more.
      if (this.#closing !== undefined) response.setHeader('connection', 'close');
      serve(request, response);
    });
    this.server.on('connection', (socket) => connections.open(socket));
    this.server.on('clientError', clientErrorHandler(connections));
  }

  /**
   * Answers where it listens. `others` are further addresses of the same name: taken with the same port, where that is free.
   * Rejects with the error of the system.
   */
  async listen(at: ListenOptions, others: readonly string[] = []): Promise<AddressInfo> {
    const bound = await begin(this.server, at);
    await Promise.all(others.map((host) => this.#listenToo({ ...at, host, port: bound.port })));
    return bound;
  }

  async #listenToo(at: ListenOptions): Promise<void> {
    // As Node makes the sockets of an HTTP server.
    const other = createPlainServer({ allowHalfOpen: true, noDelay: true });
    other.on('connection', (socket) => this.server.emit('connection', socket));
    other.maxConnections = this.server.maxConnections;
    const isBound = await begin(other, at).then(Boolean, () => false);
    if (isBound) this.#others.push(other);
  }

  /**
   * Takes no more connections, and ends those on which nobody waits for an answer. Resolves when the last is gone; whoever is not
   * that patient ends them with `server.closeAllConnections()`. Idempotent.
   */
  close(): Promise<void> {
    this.#closing ??= Promise.all([this.server, ...this.#others].map(end)).then(this.#ended);
    return this.#closing;
  }
}

function begin(server: PlainServer, at: ListenOptions): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(at, () => {
      server.off('error', reject);
      resolve(server.address() as AddressInfo);
    });
  });
}

/** Resolves too when it has never listened. */
function end(server: PlainServer): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}

function createBounded(limits: Readonly<ApiLimits>): Server {
  const server = createServer({
    // Node counts the request line and the headers together.
    maxHeaderSize: TARGET_BYTES_MAX + limits.headerBytesMax + 4 * HEADER_LINES_MAX,
    // How often both time-outs of a request are looked at.
    connectionsCheckingInterval: Math.min(2_000, limits.headersTimeoutMs),
    requireHostHeader: false,
    insecureHTTPParser: false,
  });
  // Not as options: of those Node takes no time-out of headers that is longer than the one of requests.
  server.headersTimeout = limits.headersTimeoutMs;
  server.requestTimeout = limits.requestTimeoutMs;
  server.keepAliveTimeout = limits.keepAliveTimeoutMs;
  // A socket on which nothing moves for longer than any request may take is dead.
  server.timeout = limits.requestTimeoutMs * 2;
  server.maxRequestsPerSocket = REQUESTS_PER_SOCKET_MAX;
  server.maxHeadersCount = HEADER_LINES_MAX + 1;
  server.maxConnections = limits.connectionsMax;
  // Without these listeners Node would tell every caller to send its body, and answer other expectations without JSON.
  server.on('checkContinue', (request, response) => server.emit('request', request, response));
  server.on('checkExpectation', (request, response) => {
    const json = JSON.stringify({ error: 'the expectation in the Expect header cannot be met' });
    const length = Buffer.byteLength(json);
    response.writeHead(417, { 'content-type': 'application/json', 'content-length': length, connection: 'close' });
    response.end(json);
    request.resume();
  });
  return server;
}
