/**
 * What do traces cost? A server that sends spans to a collector, and one that does not, in turns on the same machine: both run all the
 * time, and the turns are short, so that a machine that is faster in one minute than in the next favours neither.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { cpuSeconds, type ListeningProcess, startListening } from './child-process.ts';
import type { Figure } from './figure.ts';
import { publishAll } from './load.ts';
import { type Receiver, startReceiver } from './receiver-process.ts';
import { median } from './statistics.ts';
import { DEVELOPMENT_TOKEN, startWaypost } from './waypost-process.ts';

export interface TracesOptions {
  rounds: number;
  /** Of a burst. */
  messages: number;
  /** Delivered by each server before the first round. */
  warmUpMessages: number;
  onRound?: (figure: Figure) => void;
}

export const DEFAULT_TRACES: TracesOptions = { rounds: 30, messages: 4_000, warmUpMessages: 10_000 };

const COLLECTOR = fileURLToPath(new URL('./collector.ts', import.meta.url));
/** Longer than spans gather: what was begun for a burst is counted with it. */
const AFTER_BURST_MS = 700;
const DELIVERY_LIMIT_MS = 60_000;

interface Burst {
  perSecond: number;
  /** Of the server, in seconds. */
  cpu: number;
  missing: number;
}

export async function measureTraces({ rounds, messages, warmUpMessages, onRound }: TracesOptions): Promise<Figure[]> {
  const receiver = await startReceiver('ordinary');
  const collector = await startListening([COLLECTOR]);
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-bench-'));
  let dropped = 0;
  const onLine = (line: string): void => {
    if (line.includes('"spans_dropped"')) dropped = Number(/"count":(\d+)/.exec(line)?.[1] ?? 0);
  };
  const flags = ['--traces-endpoint', collector.url];
  const withTraces = await startWaypost({ dataDir: join(dataDir, 'traced'), flags, onLine });
  const without = await startWaypost({ dataDir: join(dataDir, 'plain') });
  const traced: Burst[] = [];
  const plain: Burst[] = [];
  try {
    for (const server of [withTraces, without]) await deliver(server, receiver, warmUpMessages);
    for (let round = 1; round <= rounds; round += 1) {
      const turns = [
        async () => traced.push(await deliver(withTraces, receiver, messages)),
        async () => plain.push(await deliver(without, receiver, messages)),
      ];
      for (const turn of round % 2 === 0 ? turns.reverse() : turns) await turn();
      onRound?.(rateOf(traced.slice(-1), plain.slice(-1)));
    }
  } finally {
    await withTraces.end('SIGTERM');
    await without.end('SIGTERM');
    await receiver.end();
    await collector.end('SIGTERM');
    rmSync(dataDir, { recursive: true, force: true });
  }
  const cpu = (all: readonly Burst[]) => (median(all.map((burst) => burst.cpu)) / messages) * 1_000;
  return [
    rateOf(traced, plain),
    {
      ...{ name: 'share of the rate, in the middle of all rounds', unit: '%' },
      value: 100 * median(traced.map(({ perSecond }, at) => perSecond / (plain[at]?.perSecond ?? Number.NaN))),
    },
    {
      ...{ name: 'CPU for 1,000 messages, traced', value: cpu(traced), unit: 's' },
      beside: { name: 'untraced', value: cpu(plain) },
    },
    { name: 'spans dropped', value: dropped, unit: 'messages' },
    {
      ...{ name: 'messages missing', unit: 'messages' },
      value: [...traced, ...plain].reduce((sum, { missing }) => sum + missing, 0),
    },
  ];
}

function rateOf(traced: readonly Burst[], plain: readonly Burst[]): Figure {
  const rate = (all: readonly Burst[]) => median(all.map(({ perSecond }) => perSecond));
  return {
    ...{ name: 'delivered of a burst, traced', value: rate(traced), unit: 'messages/s' },
    beside: { name: 'untraced', value: rate(plain) },
  };
}

async function deliver(server: ListeningProcess, receiver: Receiver, messages: number): Promise<Burst> {
  const target = {
    ...{ peers: 'ordinary' as const, url: server.url, token: DEVELOPMENT_TOKEN },
    destination: `${receiver.url}/`,
  };
  await receiver.expect(messages);
  const cpuBefore = cpuSeconds(server.pid);
  const { startedNs } = await publishAll(target, messages);
  await receiver.complete(DELIVERY_LIMIT_MS);
  const { lastArrivalNs, distinct } = await receiver.report();
  await sleep(AFTER_BURST_MS);
  return {
    perSecond: messages / (Number(lastArrivalNs - startedNs) / 1e9),
    cpu: cpuSeconds(server.pid) - cpuBefore,
    missing: messages - distinct,
  };
}
