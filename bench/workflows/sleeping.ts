/** Measures a million sleeping runs: memory, a start with this data, and a thousand runs that wake up at the same time. */
import { setTimeout as sleep } from 'node:timers/promises';
import { residentMebibytes } from '../child-process.ts';
import type { Figure } from '../figure.ts';
import { flush } from '../flush.ts';
import { startWaypost } from '../waypost-process.ts';
import { triggerInBatches, waitForDeliveries, waitForRuns, withSetup } from './waypost-runs.ts';

export interface SleepingOptions {
  /** Runs whose first message sleeps, which is stored like any sleeping step. */
  runs: number;
  /** Additional runs that sleep in a step until the same time. */
  waking: number;
  /** Seconds until the additional runs wake up. Their triggers, first deliveries and steps must be done earlier. */
  wakeAfterS: number;
  /** Idle time before the memory is measured. */
  quietMs: number;
}

export const DEFAULT_SLEEPING: SleepingOptions = { runs: 1_000_000, waking: 1_000, wakeAfterS: 15, quietMs: 3_000 };

/** Longer than the benchmark, shorter than any limit on delays. */
const SLEEP = '6d';
const LIMIT_MS = 120_000;

export function measureSleeping({ runs, waking, wakeAfterS, quietMs }: SleepingOptions): Promise<Figure[]> {
  return withSetup('bare', async (setup) => {
    const { endpoint } = setup;
    await sleep(quietMs);
    const emptyMebibytes = residentMebibytes(setup.server.pid);
    const createMs = await triggerInBatches(setup.server, `${endpoint.url}/three`, {
      first: 0,
      count: runs,
      headers: { 'upstash-delay': SLEEP },
    });
    flush(setup.dataDir);
    await sleep(quietMs);
    const storedMebibytes = residentMebibytes(setup.server.pid);
    await setup.server.end('SIGTERM');
    // The same port, since the endpoint publishes to that port.
    const port = Number(new URL(setup.server.url).port);
    setup.server = await startWaypost({
      dataDir: setup.dataDir,
      port,
      flags: ['--drain-limit', '0s'],
      startLimitMs: LIMIT_MS,
    });
    await sleep(quietMs);
    const restartedMebibytes = residentMebibytes(setup.server.pid);

    const wakeAtS = Math.ceil(Date.now() / 1_000) + wakeAfterS;
    const allAsleep = waitForDeliveries(endpoint, waking, LIMIT_MS);
    await triggerInBatches(setup.server, `${endpoint.url}/sleep?until=${wakeAtS}`, { first: runs, count: waking });
    if (!(await allAsleep)) throw new Error('not all runs reached their sleep');
    if (Date.now() > wakeAtS * 1_000) throw new Error('the runs were not asleep before their wake time');
    const ended = waitForRuns(endpoint, waking, LIMIT_MS);
    if (!(await ended)) throw new Error('not all runs ended after the sleep');
    const endedMs = Date.now() - wakeAtS * 1_000;
    return [
      {
        name: `RSS with ${runs} sleeping runs`,
        value: storedMebibytes,
        unit: 'MiB',
        reference: { name: 'empty', value: emptyMebibytes },
      },
      { name: 'RSS after a restart with them', value: restartedMebibytes, unit: 'MiB' },
      { name: 'runs triggered, in batches of 500', value: runs / (createMs / 1_000), unit: 'runs/s' },
      { name: 'start with them', value: setup.server.startMs, unit: 'ms' },
      { name: `${waking} runs with the same wake time: until the last has ended`, value: endedMs, unit: 'ms' },
    ];
  });
}
