/**
 * The endpoints of a crash test: one that succeeds, one that fails first, one that fails until the message was retried from the
 * DLQ, and the same for callbacks. The ledger records every request with the incarnation of the server that sent it.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { listen, originOf } from '../support/listen.ts';
import { type Arrival, isLastTelling, type Ledger, type Telling } from './ledger.ts';

export interface Endpoints {
  /** Responds with 200 after a few milliseconds. */
  ok: string;
  /** Responds like `ok`, at another address. */
  alsoOk: string;
  /** Responds with 500 to the first two attempts of a message, then with 200. */
  flaky: string;
  /** Responds with 500 until `revive` was called for the message's tag. */
  dead: string;
  /** Accepts callbacks. */
  told: string;
  /** Accepts callbacks at the second attempt. */
  toldTwice: string;
  /** Rejects all callbacks. */
  neverTold: string;
  revive(tag: string): void;
  /**
   * Must be called when the sender has exited. Waits until the last bytes of the sender are read, and then starts a new
   * incarnation.
   */
  nextIncarnation(): Promise<void>;
  /** Starts a new incarnation at once, so that earlier arrivals may be repeated. */
  beginIncarnation(): void;
  incarnation(): number;
  close(): Promise<void>;
}

// Long enough that kills often happen between the endpoint's work and its response.
const WORK_MS = 3;
const FAILURES_OF_FLAKY = 2;
const FAILURES_OF_TOLD_TWICE = 1;
// The kernel closes a killed process's connections at once; the rest of this time is for a busy machine.
const SENDER_GONE_LIMIT_MS = 10_000;

export async function openEndpoints(ledger: Ledger): Promise<Endpoints> {
  const revived = new Set<string>();
  const sockets = new Set<Socket>();
  let incarnation = 0;

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // The sender may be killed while it writes. An incomplete request does not count.
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      return;
    }
    const body = Buffer.concat(chunks).toString();
    const path = request.url ?? '';
    const retried = Number(request.headers['upstash-retried']);
    const messageId = String(request.headers['upstash-message-id']);
    const attempt = { messageId, retried, incarnation, status: statusFor(path, body, retried) };
    const answered = path.startsWith('/told') ? hear(body, attempt) : take({ tag: body, ...attempt });
    await sleep(WORK_MS);
    answered();
    response.writeHead(attempt.status).end();
  }

  /** Returns the function that records the response when it is written. */
  function take(attempt: Arrival): () => void {
    ledger.arrived(attempt);
    ledger.noteLane({ kind: 'arrived', attempt, atMs: performance.now() });
    return () => ledger.noteLane({ kind: 'responded', attempt });
  }

  function hear(body: string, attempt: Omit<Arrival, 'tag'>): () => void {
    const { sourceMessageId, retried, dlqId } = JSON.parse(body) as Payload;
    const kind = dlqId === undefined ? 'callback' : 'failureCallback';
    const telling: Telling = { kind, sourceId: sourceMessageId, sourceRetried: retried, ...attempt };
    ledger.told(telling);
    const isCallbackOver = kind === 'callback' && isLastTelling(telling);
    return () => {
      if (isCallbackOver) ledger.noteLane({ kind: 'told', sourceId: sourceMessageId, sourceRetried: retried });
    };
  }

  function statusFor(path: string, body: string, retried: number): number {
    switch (path) {
      case '/ok':
      case '/also-ok':
      case '/told':
        return 200;
      case '/flaky':
        return retried < FAILURES_OF_FLAKY ? 500 : 200;
      case '/dead':
        return revived.has(body) ? 200 : 500;
      case '/told-twice':
        return retried < FAILURES_OF_TOLD_TWICE ? 500 : 200;
      case '/told-never':
        return 500;
      default:
        return 404;
    }
  }

  const server = createServer((request, response) => void handle(request, response));
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await listen(server);
  const url = (path: string) => `${originOf(server)}${path}`;

  return {
    ok: url('/ok'),
    alsoOk: url('/also-ok'),
    flaky: url('/flaky'),
    dead: url('/dead'),
    told: url('/told'),
    toldTwice: url('/told-twice'),
    neverTold: url('/told-never'),
    revive: (tag) => void revived.add(tag),
    async nextIncarnation() {
      // First accept the pending connections, and then wait for the end of all connections.
      const limit = performance.now() + SENDER_GONE_LIMIT_MS;
      do {
        await sleep(WORK_MS * 2);
        if (performance.now() > limit) throw new Error(`${sockets.size} connections outlive the sender`);
      } while (sockets.size > 0);
      incarnation += 1;
    },
    beginIncarnation() {
      incarnation += 1;
    },
    incarnation: () => incarnation,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** The members of a callback's body (contract M 9.3) that the ledger needs. */
interface Payload {
  sourceMessageId: string;
  retried: number;
  dlqId?: string;
}
