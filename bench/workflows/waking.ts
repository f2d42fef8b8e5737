/** Measures a notify with many waiters: its response time, and the time until all runs have ended. */
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { cpuSeconds, residentMebibytes, residentPeakMebibytes } from '../child-process.ts';
import type { Figure } from '../figure.ts';
import { startDatabase } from '../postgres/database.ts';
import { DEVELOPMENT_TOKEN } from '../waypost-process.ts';
import { triggerInBatches, type WorkflowSetup, waitForDeliveries, waitForRuns, withSetup } from './waypost-runs.ts';

export interface WakingOptions {
  waiters: number;
  quietMs: number;
  /** Whether the worker is on PostgreSQL. */
  isPostgres: boolean;
}

export const DEFAULT_WAKING = { waiters: 10_000, quietMs: 2_000 };

const EVENT = 'bench-event';
const LIMIT_MS = 120_000;

export async function measureWaking(options: WakingOptions): Promise<Figure[]> {
  const database = options.isPostgres ? await startDatabase() : undefined;
  try {
    return await withSetup('bare', (setup) => notifyAll(setup, options), database?.env);
  } finally {
    await database?.end();
  }
}

async function notifyAll({ server, endpoint }: WorkflowSetup, { waiters, quietMs }: WakingOptions): Promise<Figure[]> {
  const waiting = waitForDeliveries(endpoint, waiters, LIMIT_MS);
  await triggerInBatches(server, `${endpoint.url}/wait?event=${EVENT}`, { first: 0, count: waiters });
  if (!(await waiting)) throw new Error('not all runs reached their wait');
  await sleep(quietMs);
  const beforeMebibytes = residentMebibytes(server.pid);
  const ended = waitForRuns(endpoint, waiters, LIMIT_MS);
  const startedAt = performance.now();
  const cpuBefore = cpuSeconds(server.pid);
  const response = await request(`${server.url}/v2/notify/${EVENT}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${DEVELOPMENT_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ from: 'bench' }),
    headersTimeout: LIMIT_MS,
  });
  const notified = (await response.body.json()) as { messageId?: string }[];
  const responseMs = performance.now() - startedAt;
  const responseCpu = cpuSeconds(server.pid) - cpuBefore;
  const isComplete = await ended;
  const endedMs = performance.now() - startedAt;
  const endedCpu = cpuSeconds(server.pid) - cpuBefore;
  const missing = waiters - notified.filter(({ messageId }) => messageId !== undefined).length;
  const name = `one notify for ${waiters} waiters`;
  return [
    { name: `${name}: response time`, value: responseMs / 1_000, unit: 's' },
    { name: `${name}: server CPU until the response`, value: responseCpu, unit: 's' },
    { name: `${name}: until all runs have ended`, value: endedMs / 1_000, unit: 's' },
    { name: `${name}: server CPU until all runs have ended`, value: endedCpu, unit: 's' },
    {
      name: 'waiters without a notification, or runs without an end',
      value: Math.max(missing, isComplete ? 0 : 1),
      unit: 'runs',
    },
    {
      name: 'RSS, peak',
      value: residentPeakMebibytes(server.pid),
      unit: 'MiB',
      reference: { name: 'before', value: beforeMebibytes },
    },
  ];
}
