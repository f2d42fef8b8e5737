/** Sends requests over bare keep-alive sockets, one at a time on each: the minimal work of a publisher. */
import { connect, type Socket } from 'node:net';
import { RequestSplitter } from '../request-splitter.ts';

interface PendingRequest {
  request: Buffer;
  resolve: (body: Buffer) => void;
  reject: (error: Error) => void;
}

export class BareClient {
  readonly #host: string;
  readonly #port: number;
  readonly #token: string;
  readonly #socketsMax: number;
  readonly #idle: Socket[] = [];
  readonly #waiting: PendingRequest[] = [];
  readonly #inFlight = new Map<Socket, PendingRequest>();
  #sockets = 0;

  constructor(url: string, token: string, socketsMax: number) {
    const { hostname, port } = new URL(url);
    this.#host = hostname;
    this.#port = Number(port);
    this.#token = token;
    this.#socketsMax = socketsMax;
  }

  /**
   * Returns the body of the response. Rejects unless the status is 2xx, or when the connection breaks. `token` replaces
   * the client's own.
   */
  send(
    method: string,
    path: string,
    body: string | Buffer = '',
    headers: Record<string, string> = {},
    token = this.#token,
  ): Promise<Buffer> {
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const head =
      `${method} ${path} HTTP/1.1\r\nHost: ${this.#host}:${this.#port}\r\nAuthorization: Bearer ${token}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n${lines.join('')}\r\n`;
    const request = Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from(body)]);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ request, resolve, reject });
      if (this.#idle.length === 0 && this.#sockets < this.#socketsMax) this.#open();
      this.#pump();
    });
  }

  #open(): void {
    this.#sockets += 1;
    const socket = connect({ host: this.#host, port: this.#port, noDelay: true });
    const splitter = new RequestSplitter((buffer, bodyStart, bodyEnd, headStart) => {
      const pending = this.#inFlight.get(socket);
      this.#inFlight.delete(socket);
      this.#idle.push(socket);
      // 'HTTP/1.1 2': the tenth byte is the first digit of the status.
      if (buffer[headStart + 9] === 0x32) pending?.resolve(buffer.subarray(bodyStart, bodyEnd));
      else pending?.reject(new Error(`rejected: ${buffer.toString('utf8', headStart, bodyEnd)}`));
      this.#pump();
    });
    socket.on('data', (chunk: Buffer) => splitter.push(chunk));
    socket.on('error', () => undefined); // 'close' follows
    socket.on('close', () => {
      this.#inFlight.get(socket)?.reject(new Error('the server closed a connection under load'));
      this.#inFlight.delete(socket);
      const at = this.#idle.indexOf(socket);
      if (at !== -1) this.#idle.splice(at, 1);
      this.#sockets -= 1;
    });
    this.#idle.push(socket);
  }

  #pump(): void {
    while (this.#waiting.length > 0) {
      const socket = this.#idle.pop();
      const next = socket && this.#waiting.shift();
      if (!socket || !next) return;
      this.#inFlight.set(socket, next);
      socket.write(next.request);
    }
  }
}
