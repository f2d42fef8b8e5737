/** The load generator: publishes numbered messages of 200 bytes over 64 keep-alive connections, one request at a time on each. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Pool } from 'undici';
import { RequestSplitter } from './request-splitter.ts';

const CONNECTIONS = 64;
const BODY_BYTES = 200;
const NUMBER_DIGITS = 10;

/**
 * The kind of publisher and receiver, which run on the same two cores as the server under test. `ordinary`: an HTTP client and
 * an HTTP server as in applications. `bare`: sockets with a minimal HTTP implementation, which leave nearly all of the machine
 * to the server under test and so show its own limit.
 */
export type Peers = 'ordinary' | 'bare';

export interface LoadTarget {
  peers: Peers;
  /** Where the server listens. */
  url: string;
  /** Other workers of the same store: the connections are distributed evenly. */
  otherUrls?: readonly string[];
  token: string;
  /** Tokens of other projects: the connections are distributed evenly. */
  otherTokens?: readonly string[];
  /** The URL that receives the messages. */
  destination: string;
  /** The queue of the messages; absent for none. */
  queue?: string;
  /** Options of the messages, as publish headers. */
  headers?: Record<string, string>;
}

export interface LoadResult {
  /** CLOCK_MONOTONIC before the first publish. */
  startedNs: bigint;
  /** By message number: CLOCK_MONOTONIC when the message was due to be published, even if no connection was free. */
  sentNs: BigUint64Array;
  /** By message number: the time from `sentNs` until the response was read. */
  publishMs: Float64Array;
}

/** Publishes `messages` as fast as responses arrive. Rejects when a response is not 2xx or a connection breaks. */
export function publishAll(target: LoadTarget, messages: number): Promise<LoadResult> {
  return run(target, messages, undefined);
}

/** Publishes `messages` at a fixed rate, whatever the server does. A publish that cannot be sent in time waits, and its latency includes the wait. */
export function publishPaced(target: LoadTarget, messages: number, perSecond: number): Promise<LoadResult> {
  return run(target, messages, perSecond);
}

/** Publishes at a fixed rate until `end` aborts, or `messages` are published. */
export function publishPacedUntil(
  end: AbortSignal,
  target: LoadTarget,
  messages: number,
  perSecond: number,
): Promise<LoadResult> {
  return run(target, messages, perSecond, end);
}

async function run(
  target: LoadTarget,
  messages: number,
  perSecond: number | undefined,
  end?: AbortSignal,
): Promise<LoadResult> {
  const open = (to: LoadTarget): Promise<Publisher> =>
    to.peers === 'bare' ? BarePublisher.open(to) : OrdinaryPublisher.open(to);
  const urls = [target.url, ...(target.otherUrls ?? [])];
  const tokens = [target.token, ...(target.otherTokens ?? [])];
  const connections: Publisher[] = await Promise.all(
    Array.from({ length: Math.min(CONNECTIONS, Math.max(1, messages)) }, (_, index) =>
      open({
        ...target,
        url: urls[index % urls.length] ?? target.url,
        token: tokens[index % tokens.length] ?? target.token,
      }),
    ),
  );
  const sentNs = new BigUint64Array(messages);
  const publishMs = new Float64Array(messages);
  const startedNs = process.hrtime.bigint();
  try {
    await new Promise<void>((resolve, reject) => {
      const idle = [...connections];
      let due = perSecond === undefined ? messages : 0;
      let sent = 0;
      let responses = 0;
      const pump = () => {
        while (sent < due && idle.length > 0) {
          if (perSecond === undefined) sentNs[sent] = process.hrtime.bigint();
          idle.shift()?.publish(sent); // round-robin: the server closes connections that are idle for long
          sent += 1;
        }
      };
      for (const connection of connections) {
        connection.onFailure = reject;
        connection.onResponse = (messageNumber) => {
          publishMs[messageNumber] = Number(process.hrtime.bigint() - (sentNs[messageNumber] ?? 0n)) / 1e6;
          responses += 1;
          if (responses === messages || (end?.aborted && responses === sent)) resolve();
          idle.push(connection);
          pump();
        };
      }
      end?.addEventListener('abort', () => {
        sentNs.fill(0n, sent);
        due = sent;
        if (responses === sent) resolve();
      });
      if (messages === 0) resolve();
      else if (perSecond === undefined) pump();
      else
        pace(messages, perSecond, end, (dueNow) => {
          const now = process.hrtime.bigint();
          for (; due < dueNow; due += 1) sentNs[due] = now;
          pump();
        });
    });
  } finally {
    for (const connection of connections) connection.close();
  }
  return { startedNs, sentNs, publishMs };
}

/** Reports, about once a millisecond, how many messages should have been sent by now, until `end` aborts. */
function pace(messages: number, perSecond: number, end: AbortSignal | undefined, onDue: (due: number) => void): void {
  const startMs = performance.now();
  const timer = setInterval(() => {
    if (end?.aborted) return clearInterval(timer);
    const due = Math.min(messages, Math.floor(((performance.now() - startMs) / 1000) * perSecond) + 1);
    onDue(due);
    if (due === messages) clearInterval(timer);
  }, 1);
}

/** One connection, with at most one pending publish. */
interface Publisher {
  onResponse: (messageNumber: number) => void;
  onFailure: (error: Error) => void;
  publish(messageNumber: number): void;
  close(): void;
}

class OrdinaryPublisher implements Publisher {
  onResponse: (messageNumber: number) => void = () => undefined;
  onFailure: (error: Error) => void = () => undefined;
  readonly #pool: Pool;
  readonly #path: string;
  readonly #headers: Record<string, string>;

  private constructor(target: LoadTarget) {
    const { origin } = new URL(target.url);
    this.#pool = new Pool(origin, { connections: 1, pipelining: 1 });
    this.#path = pathOf(target);
    this.#headers = headersOf(target);
  }

  static async open(target: LoadTarget): Promise<OrdinaryPublisher> {
    return new OrdinaryPublisher(target);
  }

  publish(messageNumber: number): void {
    this.#send(messageNumber).then(
      () => this.onResponse(messageNumber),
      (error: Error) => this.onFailure(error),
    );
  }

  async #send(messageNumber: number): Promise<void> {
    const response = await this.#pool.request({
      path: this.#path,
      method: 'POST',
      headers: this.#headers,
      body: String(messageNumber).padStart(NUMBER_DIGITS, '0').padEnd(BODY_BYTES, 'x'),
    });
    const text = await response.body.text();
    if (response.statusCode > 299) throw new Error(`publish rejected: ${response.statusCode} ${text}`);
  }

  close(): void {
    this.onFailure = () => undefined;
    void this.#pool.destroy();
  }
}

export class BarePublisher implements Publisher {
  onResponse: (messageNumber: number) => void = () => undefined;
  onFailure: (error: Error) => void = () => undefined;
  /** Called with each response that is not 2xx. By default, such a response is a failure. */
  onRejection: (response: string) => void = (response) => this.#fail(new Error(`publish rejected: ${response}`));
  readonly #socket: Socket;
  readonly #request: Buffer;
  readonly #numberAt: number;
  #current = -1;

  /** Use `open`. */
  constructor(socket: Socket, target: LoadTarget) {
    this.#socket = socket;
    const head = requestHead(target);
    this.#numberAt = head.length;
    this.#request = Buffer.from(head + 'x'.repeat(BODY_BYTES), 'latin1');
    const splitter = new RequestSplitter((buffer, _bodyStart, bodyEnd, headStart) => {
      // 'HTTP/1.1 2': the tenth byte is the first digit of the status.
      if (buffer[headStart + 9] !== 0x32) {
        this.onRejection(buffer.toString('latin1', headStart, Math.min(bodyEnd, headStart + 600)));
      } else this.onResponse(this.#current);
    });
    socket.on('data', (chunk: Buffer) => splitter.push(chunk));
    socket.on('error', (error) => this.#fail(error));
    socket.on('end', () => this.#fail(new Error('the server closed a connection under load')));
  }

  static async open(target: LoadTarget): Promise<BarePublisher> {
    const { hostname, port } = new URL(target.url);
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    await once(socket, 'connect');
    return new BarePublisher(socket, target);
  }

  /** The previous publish must have its response, since the bytes of the request are reused. */
  publish(messageNumber: number): void {
    this.#current = messageNumber;
    this.#request.write(String(messageNumber).padStart(NUMBER_DIGITS, '0'), this.#numberAt, 'latin1');
    this.#socket.write(this.#request);
  }

  close(): void {
    this.onFailure = () => undefined;
    this.#socket.destroy();
  }

  #fail(error: Error): void {
    this.onFailure(error);
  }
}

function headersOf(target: LoadTarget): Record<string, string> {
  return { Authorization: `Bearer ${target.token}`, 'Content-Type': 'text/plain', ...target.headers };
}

function pathOf(target: LoadTarget): string {
  const { queue, destination } = target;
  return queue === undefined ? `/v2/publish/${destination}` : `/v2/enqueue/${queue}/${destination}`;
}

function requestHead(target: LoadTarget): string {
  const headers = { Host: new URL(target.url).host, 'Content-Length': String(BODY_BYTES), ...headersOf(target) };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `POST ${pathOf(target)} HTTP/1.1\r\n${lines.join('')}\r\n`;
}
