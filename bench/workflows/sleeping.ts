/** What a million sleeping runs cost: memory, a start on them, and the wake of a thousand of them at one time. */
import { setTimeout as sleep } from 'node:timers/promises';
import { residentMebibytes } from '../child-process.ts';
import type { Figure } from '../figure.ts';
import { flush } from '../flush.ts';
import { startWaypost } from '../waypost-process.ts';
import { deliveriesHandled, runsEnded, triggerInBatches, withStage } from './waypost-runs.ts';

export interface SleepingOptions {
  /** Runs whose first message sleeps, which is stored as any step that sleeps. */
  runs: number;
  /** Runs beside them that sleep in a step until one time. */
  waking: number;
  /** Seconds until they wake: their trigger, first delivery and step need some. */
  leadS: number;
  /** How long the server is left alone before its memory is taken. */
  quietMs: number;
}

export const DEFAULT_SLEEPING: SleepingOptions = { runs: 1_000_000, waking: 1_000, leadS: 15, quietMs: 3_000 };

/** Longer than this takes, shorter than any limit on delays. */
const SLEEP = '6d';
const LIMIT_MS = 120_000;

export function measureSleeping({ runs, waking, leadS, quietMs }: SleepingOptions): Promise<Figure[]> {
  return withStage('bare', async (stage) => {
    const { endpoint } = stage;
    await sleep(quietMs);
    const emptyMebibytes = residentMebibytes(stage.server.pid);
    const createMs = await triggerInBatches(stage.server, `${endpoint.url}/three`, {
      first: 0,
      count: runs,
      headers: { 'upstash-delay': SLEEP },
    });
    flush(stage.dataDir);
    await sleep(quietMs);
    const storedMebibytes = residentMebibytes(stage.server.pid);
    await stage.server.end('SIGTERM');
    // On the port it had: the endpoint publishes there.
    const port = Number(new URL(stage.server.url).port);
    stage.server = await startWaypost({
      dataDir: stage.dataDir,
      port,
      flags: ['--drain-limit', '0s'],
      startLimitMs: LIMIT_MS,
    });
    await sleep(quietMs);
    const restartedMebibytes = residentMebibytes(stage.server.pid);

    const wakeAtS = Math.ceil(Date.now() / 1_000) + leadS;
    const asleep = deliveriesHandled(endpoint, waking, LIMIT_MS);
    await triggerInBatches(stage.server, `${endpoint.url}/sleep?until=${wakeAtS}`, { first: runs, count: waking });
    if (!(await asleep)) throw new Error('not all runs got to their sleep');
    if (Date.now() > wakeAtS * 1_000) throw new Error('it took longer than expected until all runs were asleep');
    const ended = runsEnded(endpoint, waking, LIMIT_MS);
    if (!(await ended)) throw new Error('not all runs ended after their sleep');
    const endedMs = Date.now() - wakeAtS * 1_000;
    return [
      {
        name: `RSS with ${runs} sleeping runs`,
        value: storedMebibytes,
        unit: 'MiB',
        beside: { name: 'empty', value: emptyMebibytes },
      },
      { name: 'RSS after a restart on them', value: restartedMebibytes, unit: 'MiB' },
      { name: 'runs triggered, in batches of 500', value: runs / (createMs / 1_000), unit: 'runs/s' },
      { name: 'start on them', value: stage.server.startMs, unit: 'ms' },
      { name: `${waking} of one time: from then until the last has ended`, value: endedMs, unit: 'ms' },
    ];
  });
}
