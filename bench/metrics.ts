/** Measures the response time of metrics, with a large store. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { delayedItem, storeInBatches } from './batches.ts';
import type { Figure } from './figure.ts';
import { flush } from './flush.ts';
import { quantile } from './statistics.ts';
import { DEVELOPMENT_TOKEN, startWaypost } from './waypost-process.ts';

export interface MetricsOptions {
  /** Delayed messages; one in `KEYED_EVERY` has a flow-control key. */
  messages: number;
  keys: number;
  /** Requests of each kind. */
  rounds: number;
}

export const DEFAULT_METRICS: MetricsOptions = { messages: 1_000_000, keys: 10_000, rounds: 15 };

/** No server listens on this port. */
const NOWHERE = 'http://127.0.0.1:1/';
/** Longer than the server caches a sample of its store. */
const SAMPLE_MS = 4_100;
/** One in this many messages has a flow-control key. */
const KEYED_EVERY = 10;

export async function measureMetrics({ messages, keys, rounds }: MetricsOptions): Promise<Figure[]> {
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-metrics-'));
  const server = await startWaypost({ dataDir, flags: ['--metrics-address', '0'] });
  const dispatcher = new Agent({ connections: 1 });
  const requestMs = async (url: string): Promise<number> => {
    const startedAt = performance.now();
    const response = await request(url, { dispatcher, headers: { authorization: `Bearer ${DEVELOPMENT_TOKEN}` } });
    const text = await response.body.text();
    if (response.statusCode !== 200) throw new Error(`${url}: ${response.statusCode} ${text.slice(0, 300)}`);
    return performance.now() - startedAt;
  };
  try {
    await storeInBatches(server, messages, (index) => {
      const item = delayedItem(NOWHERE);
      if (index % KEYED_EVERY > 0) return item;
      const key = {
        'Upstash-Flow-Control-Key': `k${(index / KEYED_EVERY) % keys}`,
        'Upstash-Flow-Control-Value': 'rate=9',
      };
      return { ...item, headers: { ...item.headers, ...key } };
    });
    flush(dataDir);
    const serverMetrics = metricsUrlIn(server.output());
    const projectMetrics = `${server.url}/v2/waypost/metrics`;
    const fromStore: number[] = [];
    const fromCache: number[] = [];
    const forProject: number[] = [];
    for (let round = -1; round < rounds; round += 1) {
      await sleep(SAMPLE_MS);
      const [first, second, third] = [
        await requestMs(serverMetrics),
        await requestMs(serverMetrics),
        await requestMs(projectMetrics),
      ];
      if (round < 0) continue; // warm-up: compilation and new connections
      fromStore.push(first);
      fromCache.push(second);
      forProject.push(third);
    }
    return [
      ...figuresOf('/metrics, read from the store', fromStore),
      ...figuresOf('/metrics, from the cached sample', fromCache),
      ...figuresOf("a project's metrics", forProject),
    ];
  } finally {
    await dispatcher.destroy();
    await server.end('SIGKILL');
    rmSync(dataDir, { recursive: true, force: true });
  }
}

function figuresOf(name: string, ms: readonly number[]): Figure[] {
  return [
    { name: `${name}: median`, value: quantile([...ms], 0.5), unit: 'ms' },
    { name: `${name}: max`, value: Math.max(...ms), unit: 'ms' },
  ];
}

/** The metrics address of a server that was started with `--metrics-address`, from its output. */
export function metricsUrlIn(output: string): string {
  const [, url] = /"metrics":"([^"]+)"/.exec(output) ?? [];
  if (url === undefined) throw new Error(`the server output has no metrics address:\n${output}`);
  return url;
}
