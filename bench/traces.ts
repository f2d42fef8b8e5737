/** Measures the cost of traces: a server that sends spans to a collector, and one that does not, in alternating bursts. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { alternateBursts, type Burst, medianRatio, missingOf } from './bursts.ts';
import { startListening } from './child-process.ts';
import type { Figure } from './figure.ts';
import { median } from './statistics.ts';
import { startWaypost } from './waypost-process.ts';

export interface TracesOptions {
  rounds: number;
  /** Messages per burst. */
  messages: number;
  /** Messages that each server delivers before the first round. */
  warmUpMessages: number;
  onRound?: (figure: Figure) => void;
}

export const DEFAULT_TRACES: TracesOptions = { rounds: 30, messages: 4_000, warmUpMessages: 10_000 };

const COLLECTOR = fileURLToPath(new URL('./collector.ts', import.meta.url));
/** Longer than spans are buffered, so that the export of a burst's spans is counted with the burst. */
const AFTER_BURST_MS = 700;

export async function measureTraces({ onRound, ...options }: TracesOptions): Promise<Figure[]> {
  const collector = await startListening([COLLECTOR]);
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-bench-'));
  let dropped = 0;
  const onLine = (line: string): void => {
    if (line.includes('"spans_dropped"')) dropped = Number(/"count":(\d+)/.exec(line)?.[1] ?? 0);
  };
  const flags = ['--traces-endpoint', collector.url];
  const withTraces = await startWaypost({ dataDir: join(dataDir, 'traced'), flags, onLine });
  const without = await startWaypost({ dataDir: join(dataDir, 'plain') });
  let bursts: [Burst[], Burst[]];
  try {
    bursts = await alternateBursts([withTraces, without], {
      ...{ ...options, afterMs: AFTER_BURST_MS },
      onRound: (traced, plain) => onRound?.(rateOf([traced], [plain])),
    });
  } finally {
    await withTraces.end('SIGTERM');
    await without.end('SIGTERM');
    await collector.end('SIGTERM');
    rmSync(dataDir, { recursive: true, force: true });
  }
  const [traced, plain] = bursts;
  const cpu = (all: readonly Burst[]) => (median(all.map((burst) => burst.cpu)) / options.messages) * 1_000;
  return [
    rateOf(traced, plain),
    {
      ...{ name: 'rate, median ratio of the rounds', unit: '%' },
      value: 100 * medianRatio(bursts, 'perSecond'),
    },
    {
      ...{ name: 'CPU per 1,000 messages, traced', value: cpu(traced), unit: 's' },
      reference: { name: 'untraced', value: cpu(plain) },
    },
    { name: 'spans dropped', value: dropped, unit: 'messages' },
    { name: 'messages missing', value: missingOf(bursts), unit: 'messages' },
  ];
}

function rateOf(traced: readonly Burst[], plain: readonly Burst[]): Figure {
  const rate = (all: readonly Burst[]) => median(all.map(({ perSecond }) => perSecond));
  return {
    ...{ name: 'delivery rate of a burst, traced', value: rate(traced), unit: 'messages/s' },
    reference: { name: 'untraced', value: rate(plain) },
  };
}
