/**
 * The endpoints of a crash test: one that succeeds, one that fails first, one that is dead until the message was
 * retried from the DLQ. Every arrival goes into the ledger under the incarnation of the server that sent it.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Ledger } from './ledger.ts';

export interface Endpoints {
  /** Answers 200 a few milliseconds later. */
  ok: string;
  /** Answers 500 to the first two attempts of a message, then 200. */
  flaky: string;
  /** Answers 500 until `revive` was called for the message's tag. */
  dead: string;
  revive(tag: string): void;
  /** To be called once the sender has ended: waits until its last bytes were read, then counts a new incarnation. */
  nextIncarnation(): Promise<void>;
  incarnation(): number;
  close(): Promise<void>;
}

// Long enough that a kill often falls between the endpoint's work and its answer.
const WORK_MS = 3;
const FAILURES_OF_FLAKY = 2;
// The kernel closes a killed process's connections at once; the rest is for a busy machine.
const SENDER_GONE_LIMIT_MS = 10_000;

export async function openEndpoints(ledger: Ledger): Promise<Endpoints> {
  const revived = new Set<string>();
  const sockets = new Set<Socket>();
  let incarnation = 0;

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // The sender may be killed while it writes; what did not arrive whole did not arrive.
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      return;
    }
    const tag = Buffer.concat(chunks).toString();
    const retried = Number(request.headers['upstash-retried']);
    const messageId = String(request.headers['upstash-message-id']);
    const status = statusFor(request.url ?? '', tag, retried);
    ledger.arrived({ tag, messageId, retried, incarnation, status });
    await sleep(WORK_MS);
    response.writeHead(status).end();
  }

  function statusFor(path: string, tag: string, retried: number): number {
    switch (path) {
      case '/ok':
        return 200;
      case '/flaky':
        return retried < FAILURES_OF_FLAKY ? 500 : 200;
      case '/dead':
        return revived.has(tag) ? 200 : 500;
      default:
        return 404;
    }
  }

  const server = createServer((request, response) => void handle(request, response));
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const { port } = server.address() as AddressInfo;
  const url = (path: string) => `http://127.0.0.1:${port}${path}`;

  return {
    ok: url('/ok'),
    flaky: url('/flaky'),
    dead: url('/dead'),
    revive: (tag) => void revived.add(tag),
    async nextIncarnation() {
      // Connections still waiting to be accepted first, then the end of every one of them.
      const limit = performance.now() + SENDER_GONE_LIMIT_MS;
      do {
        await sleep(WORK_MS * 2);
        if (performance.now() > limit) throw new Error(`${sockets.size} connections outlive the sender`);
      } while (sockets.size > 0);
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
