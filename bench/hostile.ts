/**
 * Measures how thousands of endpoints of one project that never respond delay everything else: another project, and other
 * endpoints of the same project (one that responds, one that is new, one that once refused a connection), compared with an
 * idle server.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DEVELOPMENT_ACCOUNTS } from '../src/config/development.ts';
import { storeInBatches } from './batches.ts';
import { type ListeningProcess, residentMebibytes } from './child-process.ts';
import type { Figure } from './figure.ts';
import { type LoadTarget, publishPaced } from './load.ts';
import { startDatabase } from './postgres/database.ts';
import { probeThrice } from './probe.ts';
import { type Receiver, startReceiver } from './receiver-process.ts';
import { arrivalDelaysMs } from './statistics.ts';
import { DEVELOPMENT_TOKEN, startWaypost } from './waypost-process.ts';

export interface HostileOptions {
  /** The number of hanging origins and the timeout of their messages, for each attack. Each attack has its own server. */
  attacks: { origins: number; timeout: string }[];
  probeMessages: number;
  /** Whether the worker is on PostgreSQL. */
  isPostgres?: boolean;
  onFigure?: (figure: Figure) => void;
}

export const DEFAULT_HOSTILE: HostileOptions = {
  attacks: [
    { origins: 10_000, timeout: '15m' },
    { origins: 3_000, timeout: '60s' },
  ],
  probeMessages: 1_000,
};

/** Time limit until the maximum number of attempts hang. */
const HANG_LIMIT_MS = 60_000;
const RETRY_DELAY_MS = 1_000;

export async function measureHostile(options: HostileOptions): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const attack of options.attacks) {
    for (const figure of await measureAttack(attack, options)) {
      figures.push(figure);
      options.onFigure?.(figure);
    }
  }
  return figures;
}

async function measureAttack(
  { origins, timeout }: HostileOptions['attacks'][number],
  { probeMessages: messages, isPostgres = false }: HostileOptions,
) {
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-hostile-'));
  const database = isPostgres ? await startDatabase() : undefined;
  const server = await startWaypost({
    dataDir,
    flags: ['--drain-limit', '0s'],
    env: database?.env ?? {},
    startLimitMs: 120_000,
  });
  const hanging = new HangingOrigins();
  const [own, other, late, unknown, behindProxy] = [
    await startReceiver('ordinary'),
    await startReceiver('ordinary'),
    await startReceiver('ordinary'),
    await startReceiver('ordinary'),
    await startReceiver('ordinary'),
  ];
  const proxy = new RefusingProxy(Number(new URL(behindProxy.url).port));
  await proxy.open();
  try {
    const token = DEVELOPMENT_ACCOUNTS.find((account) => account.token !== DEVELOPMENT_TOKEN)?.token ?? '';
    const theirs: LoadTarget = { ...target(server, other), token };
    const ours = target(server, own);
    const oursRefused = { ...ours, destination: `${proxy.url}/` };
    for (const [receiver, to] of [
      [own, ours],
      [other, theirs],
      [behindProxy, oursRefused],
    ] as const)
      await probeThrice(receiver, to, messages);
    const idle = await probeThrice(other, theirs, messages);
    const idleMebibytes = residentMebibytes(server.pid);
    await hanging.open(origins);
    const startedAt = performance.now();
    await storeInBatches(server, origins, (index) => ({
      destination: hanging.urls[index % hanging.urls.length] ?? '',
      headers: { 'Upstash-Timeout': timeout, 'Upstash-Retries': '0' },
      body: 'x'.repeat(200),
    }));
    const otherProject = await probeThrice(other, theirs, messages);
    const responsive = await probeThrice(own, ours, messages);
    const fresh = await probeThrice(late, { ...target(server, late), token }, messages);
    while (hanging.connections < origins && performance.now() - startedAt < HANG_LIMIT_MS) await sleep(10);
    const hangMs = hanging.lastAtMs - startedAt;
    const ownNew = await probeThrice(unknown, target(server, unknown), messages);
    const retryLateMs = await measureRetry(proxy, behindProxy, oursRefused);
    const refused = await probeThrice(behindProxy, oursRefused, messages);
    const hangingAttempts = hanging.connections;
    const attack = `${origins} hanging origins (${timeout})`;
    const reference = { name: 'idle', value: idle.arrivalP99Ms };
    return [
      { name: `p99 of another project, ${attack}`, value: otherProject.arrivalP99Ms, unit: 'ms', reference },
      {
        name: `p99 of another project's new endpoint, ${attack}`,
        value: fresh.arrivalP99Ms,
        unit: 'ms',
        reference,
      },
      { name: `p99 of the same project, ${attack}`, value: responsive.arrivalP99Ms, unit: 'ms', reference },
      {
        name: `p99 of a new endpoint of the same project, ${attack}`,
        value: ownNew.arrivalP99Ms,
        unit: 'ms',
        reference,
      },
      {
        name: `p99 of an endpoint of the same project that refused a connection once, ${attack}`,
        value: refused.arrivalP99Ms,
        unit: 'ms',
        reference,
      },
      { name: `delay of a retry after a refused connection, ${attack}`, value: retryLateMs, unit: 'ms' },
      { name: 'until the maximum number of attempts hang', value: hangMs / 1_000, unit: 's' },
      {
        name: 'probes that never arrived',
        value: [idle, otherProject, responsive, fresh, ownNew, refused].reduce((sum, { missing }) => sum + missing, 0),
        unit: 'messages',
      },
      { name: 'hanging attempts', value: hangingAttempts, unit: 'messages' },
      {
        name: 'RSS',
        value: residentMebibytes(server.pid),
        unit: 'MiB',
        reference: { name: 'idle', value: idleMebibytes },
      },
    ] satisfies Figure[];
  } finally {
    await proxy.shut();
    for (const receiver of [own, other, late, unknown, behindProxy]) await receiver.end();
    await server.end('SIGTERM');
    await database?.end();
    await hanging.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** The delay between the due time of a retry and its arrival, after the first attempt found no listener. */
async function measureRetry(proxy: RefusingProxy, receiver: Receiver, to: LoadTarget): Promise<number> {
  await proxy.shut();
  await receiver.expect(1);
  const { sentNs } = await publishPaced({ ...to, headers: { 'Upstash-Retry-Delay': String(RETRY_DELAY_MS) } }, 1, 100);
  await sleep(RETRY_DELAY_MS / 2);
  await proxy.open();
  await receiver.complete(60_000);
  const { arrivalsNs } = await receiver.report();
  return (arrivalDelaysMs(sentNs, arrivalsNs)[0] ?? Number.NaN) - RETRY_DELAY_MS;
}

/** A TCP proxy to a receiver. While it is shut, connections are refused. */
class RefusingProxy {
  readonly #port: number;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #ownPort = 0;

  constructor(port: number) {
    this.#port = port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#ownPort}`;
  }

  async open(): Promise<void> {
    const server = createServer((outside) => {
      const inside = connect(this.#port, '127.0.0.1');
      for (const [socket, other] of [
        [outside, inside],
        [inside, outside],
      ] as const) {
        this.#sockets.add(socket);
        socket.setNoDelay(true);
        socket.on('error', () => other.destroy()).on('close', () => this.#sockets.delete(socket));
        socket.pipe(other);
      }
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(this.#ownPort, '127.0.0.1', resolve);
    });
    const address = server.address();
    if (address !== null && typeof address !== 'string') this.#ownPort = address.port;
    this.#server = server;
  }

  async shut(): Promise<void> {
    const closed = new Promise((resolve) => this.#server?.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}

/** Origins that never respond: each is a loopback address, and one listener serves them all. */
class HangingOrigins {
  readonly urls: string[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer({ noDelay: true }, (socket) => {
    this.#sockets.add(socket);
    this.lastAtMs = performance.now();
    socket
      .on('error', () => undefined)
      .on('close', () => this.#sockets.delete(socket))
      .resume();
  });
  /** The time of the latest connection. */
  lastAtMs = 0;

  get connections(): number {
    return this.#sockets.size;
  }

  async open(count: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject).listen({ port: 0, host: '0.0.0.0', backlog: 4_096 }, resolve);
    });
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('a listener has no port');
    for (let index = 0; index < count; index += 1) {
      const host = `127.${1 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`;
      this.urls.push(`http://${host}:${address.port}/`);
    }
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

function target(server: ListeningProcess, receiver: Receiver): LoadTarget {
  return { peers: 'ordinary', url: server.url, token: DEVELOPMENT_TOKEN, destination: `${receiver.url}/` };
}
