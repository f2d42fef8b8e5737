/**
 * What do endpoints that take a request and never answer cost everybody else, thousands of them, all of one project? The
 * latency of another project, and of the same project's endpoints that answer, beside that of an idle server.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DEVELOPMENT_ACCOUNTS } from '../src/config/development.ts';
import { storeInBatches } from './batches.ts';
import { type ListeningProcess, residentMebibytes } from './child-process.ts';
import type { Figure } from './figure.ts';
import type { LoadTarget } from './load.ts';
import { probeThrice } from './probe.ts';
import { type Receiver, startReceiver } from './receiver-process.ts';
import { DEVELOPMENT_TOKEN, startWaypost } from './waypost-process.ts';

export interface HostileOptions {
  /** Each measured with a server of its own: how many origins hang, and for how long their messages let them. */
  attacks: { origins: number; timeout: string }[];
  probeMessages: number;
  onFigure?: (figure: Figure) => void;
}

export const DEFAULT_HOSTILE: HostileOptions = {
  attacks: [
    { origins: 10_000, timeout: '15m' },
    { origins: 3_000, timeout: '60s' },
  ],
  probeMessages: 1_000,
};

export async function measureHostile(options: HostileOptions): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const attack of options.attacks) {
    for (const figure of await measureAttack(attack, options.probeMessages)) {
      figures.push(figure);
      options.onFigure?.(figure);
    }
  }
  return figures;
}

async function measureAttack({ origins, timeout }: HostileOptions['attacks'][number], messages: number) {
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-hostile-'));
  const server = await startWaypost({ dataDir, flags: ['--drain-limit', '0s'] });
  const hanging = new HangingOrigins();
  const [own, other, late] = [
    await startReceiver('ordinary'),
    await startReceiver('ordinary'),
    await startReceiver('ordinary'),
  ];
  try {
    const token = DEVELOPMENT_ACCOUNTS.find((account) => account.token !== DEVELOPMENT_TOKEN)?.token ?? '';
    const theirs: LoadTarget = { ...target(server, other), token };
    const ours = target(server, own);
    for (const [receiver, to] of [
      [own, ours],
      [other, theirs],
    ] as const)
      await probeThrice(receiver, to, messages);
    const idle = await probeThrice(other, theirs, messages);
    const idleMebibytes = residentMebibytes(server.pid);
    await hanging.open(origins);
    await storeInBatches(server, origins, (index) => ({
      destination: hanging.urls[index % hanging.urls.length] ?? '',
      headers: { 'Upstash-Timeout': timeout, 'Upstash-Retries': '0' },
      body: 'x'.repeat(200),
    }));
    const beside = await probeThrice(other, theirs, messages);
    const answering = await probeThrice(own, ours, messages);
    const fresh = await probeThrice(late, { ...target(server, late), token }, messages);
    const held = hanging.connections;
    const crowd = `${origins} hanging origins (${timeout}) beside it`;
    const quiet = { name: 'idle', value: idle.arrivalP99Ms };
    return [
      { name: `p99 of another project, ${crowd}`, value: beside.arrivalP99Ms, unit: 'ms', beside: quiet },
      { name: `p99 of another project's new endpoint, ${crowd}`, value: fresh.arrivalP99Ms, unit: 'ms', beside: quiet },
      { name: `p99 of the same project, ${crowd}`, value: answering.arrivalP99Ms, unit: 'ms', beside: quiet },
      {
        name: 'probes that never arrived',
        value: idle.missing + beside.missing + answering.missing + fresh.missing,
        unit: 'messages',
      },
      { name: 'attempts that hang at a time', value: held, unit: 'messages' },
      {
        name: 'RSS',
        value: residentMebibytes(server.pid),
        unit: 'MiB',
        beside: { name: 'idle', value: idleMebibytes },
      },
    ] satisfies Figure[];
  } finally {
    for (const receiver of [own, other, late]) await receiver.end();
    await server.end('SIGTERM');
    await hanging.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** Origins without end: each a loopback address of its own, with a listener that reads and says nothing. */
class HangingOrigins {
  readonly urls: string[] = [];
  readonly #servers: Server[] = [];
  readonly #sockets = new Set<Socket>();

  get connections(): number {
    return this.#sockets.size;
  }

  async open(count: number): Promise<void> {
    for (let index = 0; index < count; index += 1) {
      const host = `127.${1 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`;
      const server = createServer((socket) => {
        this.#sockets.add(socket);
        socket
          .on('error', () => undefined)
          .on('close', () => this.#sockets.delete(socket))
          .resume();
      });
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject).listen(0, host, resolve);
      });
      const address = server.address();
      if (address === null || typeof address === 'string') throw new Error('a listener has no port');
      this.#servers.push(server);
      this.urls.push(`http://${host}:${address.port}/`);
    }
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(this.#servers.map((server) => new Promise((resolve) => server.close(resolve))));
  }
}

function target(server: ListeningProcess, receiver: Receiver): LoadTarget {
  return { peers: 'ordinary', url: server.url, token: DEVELOPMENT_TOKEN, destination: `${receiver.url}/` };
}
