/** Many hostile endpoints and a healthy one, with the real process (P9). */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { type ListeningProcess, residentMebibytes } from '../../bench/child-process.ts';
import { DEVELOPMENT_TOKEN, startWaypost } from '../../bench/waypost-process.ts';
import { DEVELOPMENT_ACCOUNTS } from '../../src/config/development.ts';
import { eventually } from '../support/eventually.ts';
import { listen } from '../support/listen.ts';

const ORIGINS = 60;
const MESSAGES_EACH = 20;

/** What hostile endpoints do as soon as a request comes in. */
const TEMPERS: ((socket: net.Socket) => void)[] = [
  () => {},
  (socket) => socket.write('HTTP/1.1 200 OK\r\nX-Never-Ends: '),
  (socket) => socket.resetAndDestroy(),
  (socket) => socket.end('garbage\r\n\r\n'),
  (socket) => socket.write(`HTTP/1.1 200 OK\r\n${'X-A: b\r\n'.repeat(10_000)}`),
];

const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).reverse()) await end();
});

function open(server: net.Server): Promise<string> {
  endings.push(() => server.close());
  return listen(server);
}

/** Notes the bodies it receives. */
async function healthyEndpoint(received: Set<string>): Promise<{ url: string; server: Server }> {
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    received.add(Buffer.concat(pieces).toString());
    response.end();
  });
  endings.push(() => server.closeAllConnections());
  return { url: await open(server), server };
}

it('P9: hostile endpoints keep no message of a healthy one waiting, and get all of theirs once they recover', {
  timeout: 60_000,
}, async () => {
  const received = new Set<string>();
  const healthy = await healthyEndpoint(received);
  let haveRecovered = false;
  const sockets = new Set<net.Socket>();
  const hostile = await Promise.all(
    Array.from({ length: ORIGINS }, (_, nth) =>
      open(
        net.createServer((socket) => {
          sockets.add(socket);
          socket.on('close', () => sockets.delete(socket));
          socket.on('error', () => {}); // the server hangs up on those who do this
          if (haveRecovered) healthy.server.emit('connection', socket);
          else socket.once('data', () => TEMPERS[nth % TEMPERS.length]?.(socket));
        }),
      ),
    ),
  );
  endings.push(() => {
    for (const socket of sockets) socket.destroy();
  });
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-hostile-'));
  endings.push(() => rmSync(dataDir, { recursive: true, force: true }));
  // Fewer slots than messages that would hold one: without a fair share nothing would be left.
  const flags = ['--in-flight-max', '512'];
  let server: ListeningProcess = await startWaypost({ dataDir, flags });
  endings.push(() => server.end('SIGKILL'));

  async function publishAll(url: string, names: string[], headers: Record<string, string> = {}): Promise<void> {
    const items = names.map((name) => ({ destination: url, body: name, headers }));
    const reply = await fetch(`${server.url}/v2/batch`, {
      method: 'POST',
      headers: { authorization: `Bearer ${DEVELOPMENT_TOKEN}` },
      body: JSON.stringify(items),
    });
    expect(reply.status).toBe(200);
    await reply.text();
  }
  const hasAll = (names: string[]) => names.every((name) => received.has(name));

  const theirs = hostile.map((_, nth) => Array.from({ length: MESSAGES_EACH }, (__, message) => `${nth}/${message}`));
  const patient = { 'Upstash-Retries': '50', 'Upstash-Retry-Delay': '500', 'Upstash-Timeout': '1s' };
  for (const [nth, url] of hostile.entries()) await publishAll(url, theirs[nth] ?? [], patient);

  const ours = Array.from({ length: 200 }, (_, nth) => `healthy ${nth}`);
  await publishAll(healthy.url, ours);
  await eventually('the healthy messages', () => hasAll(ours), 5_000);
  expect(residentMebibytes(server.pid)).toBeLessThan(700);

  await server.end('SIGKILL');
  server = await startWaypost({ dataDir, flags });
  haveRecovered = true;
  for (const socket of sockets) socket.destroy();
  await eventually(
    () => `all of theirs; ${received.size - ours.length} of ${theirs.flat().length} came`,
    () => hasAll(theirs.flat()),
    30_000,
  );
});

it('P9: endpoints that never answer hold half of the slots at most, and delay neither another project nor those that answer', {
  timeout: 60_000,
}, async () => {
  const [slots, origins] = [64, 200];
  const received = new Set<string>();
  const healthy = await healthyEndpoint(received);
  const hanging = new Set<net.Socket>();
  endings.push(() => {
    for (const socket of hanging) socket.destroy();
  });
  const silent = await Promise.all(
    Array.from({ length: origins }, () =>
      open(
        net.createServer((socket) => {
          hanging.add(socket.on('error', () => {}));
          socket.resume();
        }),
      ),
    ),
  );
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-hostile-'));
  endings.push(() => rmSync(dataDir, { recursive: true, force: true }));
  const flags = ['--in-flight-max', String(slots), '--drain-limit', '0s'];
  const server = await startWaypost({ dataDir, flags });
  endings.push(() => server.end('SIGKILL'));
  const publishAll = async (token: string, urls: string[], names: string[]): Promise<void> => {
    const items = names.map((body, index) => ({ destination: urls[index % urls.length], body }));
    const headers = { authorization: `Bearer ${token}` };
    const reply = await fetch(`${server.url}/v2/batch`, { method: 'POST', headers, body: JSON.stringify(items) });
    expect(reply.status).toBe(200);
    await reply.text();
  };
  const named = (name: string, count: number) => Array.from({ length: count }, (_, nth) => `${name} ${nth}`);
  const hasAll = (names: string[]) => names.every((name) => received.has(name));
  const otherToken = DEVELOPMENT_ACCOUNTS.find(({ token }) => token !== DEVELOPMENT_TOKEN)?.token ?? '';

  await publishAll(DEVELOPMENT_TOKEN, [healthy.url], named('before', 1));
  await eventually('the first message', () => hasAll(named('before', 1)));
  await publishAll(DEVELOPMENT_TOKEN, silent, named('hanging', origins));
  await eventually(
    () => `${hanging.size} attempts that hang`,
    () => hanging.size === (slots / 2) * (7 / 8),
  );
  await publishAll(otherToken, [healthy.url], named('of another project', 100));
  await publishAll(DEVELOPMENT_TOKEN, [healthy.url], named('of the same project', 100));
  await eventually('all that have somebody who answers', () =>
    hasAll([...named('of another project', 100), ...named('of the same project', 100)]),
  );
  expect(hanging.size).toBe((slots / 2) * (7 / 8));
});
