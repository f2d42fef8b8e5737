/** What do traces cost? A server that sends spans to a collector, and one that does not, in turns on the same machine. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startListening } from './child-process.ts';
import type { Figure } from './figure.ts';
import { DEFAULT_WORKLOAD, type Measurement, measure, type Workload } from './measure.ts';
import { type Receiver, startReceiver } from './receiver-process.ts';
import { median } from './statistics.ts';
import { DEVELOPMENT_TOKEN, startWaypost } from './waypost-process.ts';

export interface TracesOptions {
  rounds: number;
  workload: Workload;
  onRound?: (figure: Figure) => void;
}

export const DEFAULT_TRACES: TracesOptions = { rounds: 3, workload: { ...DEFAULT_WORKLOAD, steadySeconds: 1 } };

const COLLECTOR = fileURLToPath(new URL('./collector.ts', import.meta.url));

export async function measureTraces({ rounds, workload, onRound }: TracesOptions): Promise<Figure[]> {
  const receiver = await startReceiver('ordinary');
  const collector = await startListening([COLLECTOR]);
  const traced: Measurement[] = [];
  const plain: Measurement[] = [];
  let dropped = 0;
  try {
    for (let round = 1; round <= rounds; round += 1) {
      const order = [false, true];
      // A machine that becomes slower by the minute favours neither.
      if (round % 2 === 0) order.reverse();
      for (const isTraced of order) {
        const one = await measureOne(receiver, workload, isTraced ? ['--traces-endpoint', collector.url] : []);
        (isTraced ? traced : plain).push(one.measured);
        dropped = Math.max(dropped, one.dropped);
      }
      onRound?.(rateOf(traced.slice(-1), plain.slice(-1)));
    }
  } finally {
    await receiver.end();
    await collector.end('SIGTERM');
  }
  const missing = [...traced, ...plain].reduce((sum, one) => sum + one.missing, 0);
  const cpu = (all: readonly Measurement[]) => median(all.map(({ cpuSecondsPerThousand }) => cpuSecondsPerThousand));
  return [
    rateOf(traced, plain),
    {
      ...{ name: 'CPU for 1,000 messages, traced', value: cpu(traced), unit: 's' },
      beside: { name: 'untraced', value: cpu(plain) },
    },
    { name: 'spans dropped, of a whole server at most', value: dropped, unit: 'messages' },
    { name: 'messages missing', value: missing, unit: 'messages' },
  ];
}

function rateOf(traced: readonly Measurement[], plain: readonly Measurement[]): Figure {
  const rate = (all: readonly Measurement[]) => median(all.map(({ throughputPerSecond }) => throughputPerSecond));
  return {
    ...{ name: 'delivered of a burst, traced', value: rate(traced), unit: 'messages/s' },
    beside: { name: 'untraced', value: rate(plain) },
  };
}

async function measureOne(
  receiver: Receiver,
  workload: Workload,
  flags: string[],
): Promise<{ measured: Measurement; dropped: number }> {
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-bench-'));
  let dropped = 0;
  const onLine = (line: string): void => {
    if (line.includes('"spans_dropped"')) dropped = Number(/"count":(\d+)/.exec(line)?.[1] ?? 0);
  };
  const server = await startWaypost({ dataDir, flags, onLine });
  try {
    const target = {
      ...{ peers: 'ordinary' as const, url: server.url, token: DEVELOPMENT_TOKEN },
      destination: `${receiver.url}/`,
    };
    return { measured: await measure(server, receiver, target, workload), dropped };
  } finally {
    await server.end('SIGTERM');
    rmSync(dataDir, { recursive: true, force: true });
  }
}
