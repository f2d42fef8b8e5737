/** The endpoint of the demo: a small HTTP server with a path for each behaviour that the demo shows. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface DemoReceiver {
  url: string;
  /** Lets `/broken` succeed from now on. */
  repair(): void;
  close(): Promise<void>;
}

const SLOW_MS = 150;

/** Listens on a free port of 127.0.0.1. */
export async function startReceiver(): Promise<DemoReceiver> {
  let broken = true;
  const attemptsByMessage = new Map<string, number>();
  const server = createServer((request, response) => {
    request.resume(); // the demo does not need the bodies
    request.on('end', () => {
      const messageId = String(request.headers['upstash-message-id']);
      const attempt = (attemptsByMessage.get(messageId) ?? 0) + 1;
      attemptsByMessage.set(messageId, attempt);
      const status = statusFor(request.url ?? '/', attempt, broken);
      const respond = (): void => {
        response.writeHead(status, { 'content-type': 'text/plain' }).end(status === 200 ? 'thank you\n' : 'not now\n');
      };
      // Slow enough to show that the next message of a queue waits.
      if (request.url?.startsWith('/slow/')) setTimeout(respond, SLOW_MS);
      else respond();
    });
  });
  await listen(server);
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    repair: () => {
      broken = false;
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function statusFor(path: string, attempt: number, broken: boolean): number {
  if (path === '/shaky') return attempt <= 2 ? 503 : 200;
  if (path === '/down') return 500;
  if (path === '/broken') return broken ? 500 : 200;
  return 200;
}

function listen(server: Server): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject).listen(0, '127.0.0.1', resolve);
  });
}
