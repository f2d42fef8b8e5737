/** Sends and receives bytes over a socket, for requests that no HTTP client would send. */
import { connect, type Socket } from 'node:net';

export interface RawResponse {
  status: number;
  headers: string;
  text: string;
}

/** A connection to the server, with all bytes that were received. */
export class RawConnection {
  readonly socket: Socket;
  received = '';
  /** The code of the socket's error, if there was one. */
  error: string | undefined;
  /** Resolves once the connection is closed. */
  readonly closed: Promise<void>;

  constructor(port: number, host = '127.0.0.1') {
    this.socket = connect(port, host);
    this.socket.setEncoding('latin1');
    this.socket.on('data', (text: string) => {
      this.received += text;
    });
    this.socket.on('error', ({ code }: NodeJS.ErrnoException) => {
      this.error = code;
    });
    this.closed = new Promise((resolve) => this.socket.on('close', () => resolve()));
  }

  send(text: string | Buffer): void {
    this.socket.write(typeof text === 'string' ? Buffer.from(text, 'latin1') : text);
  }

  /** Resolves once `isEnough` accepts the received bytes, or the connection is closed. */
  async until(isEnough: (received: string) => boolean): Promise<string> {
    while (!isEnough(this.received) && !this.socket.closed) {
      await new Promise<void>((resolve) => {
        const done = (): void => {
          this.socket.off('data', done).off('close', done);
          resolve();
        };
        this.socket.on('data', done).on('close', done);
      });
    }
    return this.received;
  }

  destroy(): void {
    this.socket.destroy();
  }
}

/** Sends one request unchanged on a new connection, and returns the response once the connection is closed. */
export async function exchange(port: number, request: string | Buffer): Promise<RawResponse> {
  const connection = new RawConnection(port);
  connection.send(request);
  await connection.closed;
  return parseResponse(connection.received);
}

export function parseResponse(received: string): RawResponse {
  const headEnd = received.indexOf('\r\n\r\n');
  const head = received.slice(0, headEnd);
  return { status: Number(head.slice(9, 12)), headers: head, text: received.slice(headEnd + 4) };
}
