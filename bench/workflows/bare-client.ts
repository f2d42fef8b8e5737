/** Requests over bare keep-alive sockets, one at a time on each: the least work that a publisher can do. */
import { connect, type Socket } from 'node:net';
import { RequestSplitter } from '../request-splitter.ts';

interface Waiting {
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
  readonly #waiting: Waiting[] = [];
  readonly #underWay = new Map<Socket, Waiting>();
  #sockets = 0;

  constructor(url: string, token: string, socketsMax: number) {
    const { hostname, port } = new URL(url);
    this.#host = hostname;
    this.#port = Number(port);
    this.#token = token;
    this.#socketsMax = socketsMax;
  }

  /** The body of the answer; rejects when it is not 2xx, or the connection breaks. `token`: in place of its own. */
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
      const answered = this.#underWay.get(socket);
      this.#underWay.delete(socket);
      this.#idle.push(socket);
      // 'HTTP/1.1 2': the tenth byte is the class of the status.
      if (buffer[headStart + 9] === 0x32) answered?.resolve(buffer.subarray(bodyStart, bodyEnd));
      else answered?.reject(new Error(`refused: ${buffer.toString('utf8', headStart, bodyEnd)}`));
      this.#pump();
    });
    socket.on('data', (chunk: Buffer) => splitter.push(chunk));
    socket.on('error', () => undefined); // 'close' follows
    socket.on('close', () => {
      this.#underWay.get(socket)?.reject(new Error('the server closed a connection under load'));
      this.#underWay.delete(socket);
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
      this.#underWay.set(socket, next);
      socket.write(next.request);
    }
  }
}
