/** Measures the resume of a failed run with many messages: the response time, and the latency of other clients. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool, request } from 'undici';
import { storeInBatches } from '../batches.ts';
import type { ListeningProcess } from '../child-process.ts';
import type { Figure } from '../figure.ts';
import { startDatabase } from '../postgres/database.ts';
import { quantile } from '../statistics.ts';
import { DEVELOPMENT_TOKEN } from '../waypost-process.ts';
import { stepHeaders } from './step-headers.ts';
import { withSetup } from './waypost-runs.ts';

export interface ResumingOptions {
  messages: number;
  quietMs: number;
  /** Whether the worker is on PostgreSQL. */
  isPostgres: boolean;
}

export const DEFAULT_RESUMING = { messages: 20_000, quietMs: 6_000 };

const RUN_ID = 'wfr_bench_resuming';
/** No server listens on this port. */
const NOWHERE = 'http://127.0.0.1:9/';
const LIMIT_MS = 120_000;
const DELAY = { 'upstash-delay': '6d' };

export async function measureResuming(options: ResumingOptions): Promise<Figure[]> {
  const database = options.isPostgres ? await startDatabase() : undefined;
  try {
    return await withSetup('bare', ({ server }) => resumeRun(server, options), database?.env);
  } finally {
    await database?.end();
  }
}

async function resumeRun(server: ListeningProcess, { messages, quietMs }: ResumingOptions): Promise<Figure[]> {
  const pool = new Pool(server.url, { connections: 2 });
  try {
    const dlqId = await failRun(server, messages);
    await sleep(quietMs);
    const idle = await probeWhile(pool, sleep(quietMs));
    const startedAt = performance.now();
    let responseMs = 0;
    const resumed = post(pool, `/v2/workflows/dlq/resume/${dlqId}`, {}).then(() => {
      responseMs = performance.now() - startedAt;
    });
    const duringResume = await probeWhile(pool, resumed);
    const name = `publishes of others while a run of ${messages} messages is resumed`;
    return [
      { name: `${name}: max`, value: Math.max(...duringResume), ...withReference(Math.max(...idle)) },
      { name: `${name}: p99`, value: quantile(duringResume, 0.99), ...withReference(quantile(idle, 0.99)) },
      { name: 'response time of the resume', value: responseMs, unit: 'ms' },
    ];
  } finally {
    await pool.destroy();
  }
}

function withReference(value: number): Pick<Figure, 'unit' | 'reference'> {
  return { unit: 'ms', reference: { name: 'idle', value } };
}

/** Creates a run with `messages` planned steps, none of which is due, and one more step, which fails. */
export async function failRun(server: { url: string }, messages: number): Promise<string> {
  const trigger = {
    ...stepHeaders(RUN_ID, NOWHERE),
    'upstash-workflow-init': 'true',
    'upstash-retries': '0',
    ...DELAY,
  };
  await storeInBatches(server, 1, () => ({ destination: NOWHERE, headers: trigger, body: '{}' }));
  await storeInBatches(server, messages, (index) => plannedStep(index + 1, DELAY));
  await storeInBatches(server, 1, () => plannedStep(messages + 1, {}));
  return dlqIdOf(server);
}

function plannedStep(stepId: number, headers: Record<string, string>) {
  const step = { stepId: 0, stepName: `step ${stepId}`, stepType: 'Run', targetStep: stepId, concurrent: 2 };
  return { destination: NOWHERE, headers: { ...stepHeaders(RUN_ID, NOWHERE), ...headers }, body: JSON.stringify(step) };
}

async function dlqIdOf({ url }: { url: string }): Promise<string> {
  const deadline = performance.now() + LIMIT_MS;
  while (performance.now() < deadline) {
    const response = await request(`${url}/v2/workflows/dlq`, { headers: AUTHORIZATION });
    const { messages } = (await response.body.json()) as { messages: { dlqId: string }[] };
    if (messages[0]) return messages[0].dlqId;
    await sleep(100);
  }
  throw new Error('the run has not failed');
}

/** Publishes one message after the other until `work` settles; returns their durations. */
async function probeWhile(pool: Pool, work: Promise<unknown>): Promise<number[]> {
  const durationsMs: number[] = [];
  let isFinished = false;
  const end = work.finally(() => {
    isFinished = true;
  });
  while (!isFinished) {
    const startedAt = performance.now();
    await post(pool, `/v2/publish/${NOWHERE}`, DELAY);
    durationsMs.push(performance.now() - startedAt);
  }
  await end;
  return durationsMs;
}

async function post(pool: Pool, path: string, headers: Record<string, string>): Promise<void> {
  const response = await pool.request({
    ...{ path, method: 'POST', headers: { ...AUTHORIZATION, ...headers } },
    headersTimeout: LIMIT_MS,
  });
  const text = await response.body.text();
  if (response.statusCode >= 300) throw new Error(`${path} failed with status ${response.statusCode}: ${text}`);
}

const AUTHORIZATION = { authorization: `Bearer ${DEVELOPMENT_TOKEN}` };
