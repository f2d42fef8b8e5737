/** Measures the latency of a publisher with a token while clients without one send as many requests as the network accepts. */
import { fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { request } from 'undici';
import type { Figure } from '../figure.ts';
import { quantile } from '../statistics.ts';
import { startWaypost } from '../waypost-process.ts';
import { AUTHORIZATION } from './requests.ts';

export interface FloodOptions {
  connections: number;
  seconds: number;
  /** The folder of the checkout to measure; default: this one. */
  program?: string;
}

export const DEFAULT_FLOOD: FloodOptions = { connections: 50, seconds: 10 };

const PUBLISHES_PER_SECOND = 50;
const BODY = 'x'.repeat(1_000);

const FLOODS: readonly (readonly [name: string, request: string])[] = [
  ['GET without a token', 'GET /v2/logs HTTP/1.1\r\nHost: h\r\n\r\n'],
  [
    'POST with a bad token',
    `POST /v2/batch HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer nope\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`,
  ],
  ['GET of a public route', 'GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n'],
];

export async function measureFloods(options: FloodOptions, onFigure: (figure: Figure) => void): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const [name, flood] of [['no requests', ''] as const, ...FLOODS]) {
    const timesMs = await publishTimesMs(flood, options);
    for (const [label, q] of [
      ['p50', 0.5],
      ['p99', 0.99],
      ['max', 1],
    ] as const) {
      const value = quantile(timesMs, q);
      const figure: Figure = { name: `publish during a flood of ${name}, ${label}`, value, unit: 'ms' };
      figures.push(figure);
      onFigure(figure);
    }
  }
  return figures;
}

async function publishTimesMs(flood: string, { connections, seconds, program }: FloodOptions): Promise<number[]> {
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-flood-'));
  const server = await startWaypost({ dataDir, ...(program !== undefined && { program }) });
  const publish = async (): Promise<number> => {
    const startedAt = performance.now();
    const { statusCode, body } = await request(`${server.url}/v2/publish/http://127.0.0.1:1/`, {
      method: 'POST',
      headers: { authorization: AUTHORIZATION, 'upstash-delay': '1h' },
      body: 'x',
    });
    await body.dump();
    if (statusCode !== 200) throw new Error(`a publish failed with status ${statusCode}`);
    return performance.now() - startedAt;
  };
  for (let nth = 0; nth < 200; nth += 1) await publish();
  const flooder =
    flood === ''
      ? undefined
      : fork(fileURLToPath(new URL('./flooder.ts', import.meta.url)), [
          new URL(server.url).port,
          String(connections),
          flood,
        ]);
  try {
    const timesMs: Promise<number>[] = [];
    for (let nth = 0; nth < seconds * PUBLISHES_PER_SECOND; nth += 1) {
      timesMs.push(publish());
      await sleep(1_000 / PUBLISHES_PER_SECOND);
    }
    return await Promise.all(timesMs);
  } finally {
    flooder?.kill('SIGKILL');
    await server.end('SIGKILL');
    rmSync(dataDir, { recursive: true, force: true });
  }
}
