/** One notify that wakes many: how long until it is answered, and until all have been told? */
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { residentMebibytes, residentPeakMebibytes } from '../child-process.ts';
import type { Figure } from '../figure.ts';
import { DEVELOPMENT_TOKEN } from '../waypost-process.ts';
import { deliveriesHandled, runsEnded, triggerInBatches, withStage } from './waypost-runs.ts';

export interface WakingOptions {
  waiters: number;
  quietMs: number;
}

export const DEFAULT_WAKING: WakingOptions = { waiters: 10_000, quietMs: 2_000 };

const EVENT = 'bench-event';
const LIMIT_MS = 120_000;

export function measureWaking({ waiters, quietMs }: WakingOptions): Promise<Figure[]> {
  return withStage('bare', async ({ server, endpoint }) => {
    const waiting = deliveriesHandled(endpoint, waiters, LIMIT_MS);
    await triggerInBatches(server, `${endpoint.url}/wait?event=${EVENT}`, { first: 0, count: waiters });
    if (!(await waiting)) throw new Error('not all runs got to their wait');
    await sleep(quietMs);
    const beforeMebibytes = residentMebibytes(server.pid);
    const ended = runsEnded(endpoint, waiters, LIMIT_MS);
    const startedAt = performance.now();
    const answer = await request(`${server.url}/v2/notify/${EVENT}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${DEVELOPMENT_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({ from: 'bench' }),
      headersTimeout: LIMIT_MS,
    });
    const told = (await answer.body.json()) as { messageId?: string }[];
    const answeredMs = performance.now() - startedAt;
    const isComplete = await ended;
    const endedMs = performance.now() - startedAt;
    const missing = waiters - told.filter(({ messageId }) => messageId !== undefined).length;
    return [
      { name: `one notify for ${waiters} waiters: answered after`, value: answeredMs / 1_000, unit: 's' },
      { name: `one notify for ${waiters} waiters: all runs ended after`, value: endedMs / 1_000, unit: 's' },
      {
        name: 'waiters that were not told, or did not end',
        value: Math.max(missing, isComplete ? 0 : 1),
        unit: 'runs',
      },
      {
        name: 'RSS at its peak',
        value: residentPeakMebibytes(server.pid),
        unit: 'MiB',
        beside: { name: 'before', value: beforeMebibytes },
      },
    ];
  });
}
