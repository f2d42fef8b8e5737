/** Starts and stops Node's HTTP server with our limits. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import {
  type AddressInfo,
  createServer as createPlainServer,
  type ListenOptions,
  type Server as PlainServer,
  type Socket,
} from 'node:net';
import { type ApiLimits, HEADER_LINES_MAX, REQUESTS_PER_SOCKET_MAX, TARGET_BYTES_MAX } from '../limits.ts';
import { refusal } from '../response.ts';
import type { Connections } from './connections.ts';

/**
 * Number of listening sockets, where the system lets them share a port. The event loop accepts one connection of each socket
 * per turn. With one socket, the last of a thousand new connections would wait for a thousand turns.
 */
const SOCKETS = 32;

export interface ListenerOptions {
  limits: Readonly<ApiLimits>;
  connections: Connections;
  /** Sends the response to a request. Never throws. */
  serve: (request: IncomingMessage, response: ServerResponse) => void;
  /** Called when no more connections are accepted. Each response that would never end must then be ended. */
  onClosing: () => void;
  /** Called when the last connection is closed. */
  onClosed: () => Promise<void>;
}

export class Listener {
  readonly server: Server;
  /** Further listening sockets, which pass their connections to `server`. */
  readonly #others: PlainServer[] = [];
  readonly #connectionsMax: number;
  readonly #onClosing: () => void;
  readonly #onClosed: () => Promise<void>;
  /** Open connections of all sockets. */
  #open = 0;
  #closing: Promise<void> | undefined;

  constructor({ limits, connections, serve, onClosing: closing, onClosed: ended }: ListenerOptions) {
    this.server = createBounded(limits);
    this.#connectionsMax = limits.connectionsMax;
    this.#onClosing = closing;
    this.#onClosed = ended;
    this.server.on('request', (request, response) => {
      // The request is still served. The engine rejects a message if the server no longer accepts messages.
      if (this.#closing !== undefined) response.setHeader('connection', 'close');
      serve(request, response);
    });
    this.server.on('connection', (socket) => {
      this.#open += 1;
      socket.once('close', () => {
        this.#open -= 1;
      });
      connections.open(socket);
    });
    this.server.on('clientError', clientErrorHandler(connections));
  }

  /**
   * Returns the address of the listening socket. `others` are further addresses of the same host name, which get the same port
   * if it is free. Rejects with the error of the system.
   */
  async listen(at: ListenOptions, others: readonly string[] = []): Promise<AddressInfo> {
    const bound = await startListening(this.server, at);
    const hosts = [at.host, ...others].flatMap((host) => Array(at.reusePort ? SOCKETS : 1).fill(host));
    // `this.server` already listens on the first host.
    await Promise.all(hosts.slice(1).map((host) => this.#listenAlso({ ...at, host, port: bound.port })));
    return bound;
  }

  async #listenAlso(at: ListenOptions): Promise<void> {
    // The same options as Node uses for the sockets of an HTTP server.
    const other = createPlainServer({ allowHalfOpen: true, noDelay: true });
    other.on('connection', (socket) => {
      if (this.#open >= this.#connectionsMax) {
        socket.destroy();
        return;
      }
      // `maxConnections` counts only the server's own connections, so each connection passed to the server lowers it by one.
      this.server.maxConnections -= 1;
      socket.once('close', () => {
        this.server.maxConnections += 1;
      });
      this.server.emit('connection', socket);
    });
    const isBound = await startListening(other, at).then(Boolean, () => false);
    if (isBound) this.#others.push(other);
  }

  /**
   * Accepts no more connections, and closes idle connections. Resolves when the last connection is closed. To end the
   * other connections early, call `server.closeAllConnections()`. Idempotent.
   */
  close(): Promise<void> {
    if (!this.#closing) {
      this.#closing = Promise.all([this.server, ...this.#others].map(closeServer)).then(this.#onClosed);
      this.#onClosing();
    }
    return this.#closing;
  }
}

/** Responses to input that is not a valid request. After such a response, the connection is closed. */
const RESPONSE_BY_CODE: ReadonlyMap<string, readonly [status: string, error: string]> = new Map([
  ['HPE_HEADER_OVERFLOW', ['431 Request Header Fields Too Large', 'request line and headers are too large']],
  ['HPE_CHUNK_EXTENSIONS_OVERFLOW', ['413 Payload Too Large', 'chunk extensions are too large']],
  /** The headers or the body arrived too slowly. Remedy: check the network and the proxy; `WAYPOST_REQUEST_TIMEOUT` is the limit. */
  ['ERR_HTTP_REQUEST_TIMEOUT', ['408 Request Timeout', 'the request did not arrive in time']],
]);

const MALFORMED = ['400 Bad Request', 'malformed HTTP request'] as const;

/**
 * For the server's `clientError` event. The responses to earlier requests of the connection are sent first, since these
 * requests may have taken effect (P1).
 */
function clientErrorHandler(connections: Connections): (error: NodeJS.ErrnoException, socket: Socket) => void {
  return (error, socket) => {
    if (error.code === 'ECONNRESET' || socket.destroyed) socket.destroy();
    else connections.of(socket).fail(() => respondAndClose(error, socket));
  };
}

function respondAndClose({ code = '' }: NodeJS.ErrnoException, socket: Socket): void {
  if (socket.destroyed || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, text] = RESPONSE_BY_CODE.get(code) ?? MALFORMED;
  const json = JSON.stringify({ error: text });
  const head = `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(json)}`;
  // The connection is closed at once: the client does not speak HTTP, or is too slow.
  socket.end(`${head}\r\nconnection: close\r\n\r\n${json}`, () => socket.destroy());
}

function startListening(server: PlainServer, at: ListenOptions): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(at, () => {
      server.off('error', reject);
      resolve(server.address() as AddressInfo);
    });
  });
}

/** Resolves even if the server has never listened. */
function closeServer(server: PlainServer): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}

function createBounded(limits: Readonly<ApiLimits>): Server {
  const server = createServer({
    // Node counts the request line and the headers together.
    maxHeaderSize: TARGET_BYTES_MAX + limits.headerBytesMax + 4 * HEADER_LINES_MAX,
    // How often Node checks both timeouts of a request.
    connectionsCheckingInterval: Math.min(2_000, limits.headersTimeoutMs),
    requireHostHeader: false,
    insecureHTTPParser: false,
  });
  // Set here, because Node rejects options whose header timeout is longer than the request timeout.
  server.headersTimeout = limits.headersTimeoutMs;
  server.requestTimeout = limits.requestTimeoutMs;
  server.keepAliveTimeout = limits.keepAliveTimeoutMs;
  // A socket without traffic for longer than the longest request is dead.
  server.timeout = limits.requestTimeoutMs * 2;
  server.maxRequestsPerSocket = REQUESTS_PER_SOCKET_MAX;
  server.maxHeadersCount = HEADER_LINES_MAX + 1;
  server.maxConnections = limits.connectionsMax;
  // A client may close its side of the connection after its last request, and still receives all responses.
  Object.assign(server, { httpAllowHalfOpen: true });
  // Without these listeners, Node would send `100 Continue` to every client, and reject other expectations without JSON.
  server.on('checkContinue', (request, response) => server.emit('request', request, response));
  server.on('checkExpectation', (request, response) => {
    /** The `Expect` header is not `100-continue`. Remedy: send the request without it. */
    const { status, json } = refusal(417, 'the expectation in the Expect header cannot be met');
    const length = Buffer.byteLength(json);
    response.writeHead(status, { 'content-type': 'application/json', 'content-length': length, connection: 'close' });
    response.end(json);
    request.resume();
  });
  return server;
}
