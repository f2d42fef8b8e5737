/**
 * Measures what other workers suffer while a worker hangs in the middle of a batch. One worker is stopped while it holds the
 * row lock of a project. The other gets publishes for that project and for another one, and readiness checks.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DEVELOPMENT_ACCOUNTS } from '../../src/config/development.ts';
import type { Cluster, Row } from '../support/postgres/cluster.ts';
import { type Worker, Workers } from './workers.ts';

/** Responses of the healthy worker while the other one hung. */
export interface HungWorkerFigures {
  /**
   * Response times of publishes of another project, plain and into a lane, and of `/readyz`: 99th percentile and longest,
   * in ms.
   */
  others: { count: number; p99Ms: number; maxMs: number };
  /** The longest time without a response to a publish of the locked project, in ms. */
  gapMs: number;
  /** Responses other than 2xx. */
  refused: number;
}

const HANGS_MS = 4_000;
const SETTLES_MS = 1_000;
const PUBLISHERS = 4;
const TRIES_MAX = 500;

const [{ token: LOCKED }, other] = DEVELOPMENT_ACCOUNTS;
const OTHER = other?.token ?? '';

interface Answered {
  of: 'locked' | 'others';
  atMs: number;
  tookMs: number;
  isOk: boolean;
}

interface Noted {
  answers: Answered[];
  /** Start times of requests without a response, except those of the locked project. */
  waiting: Set<{ sinceMs: number }>;
}

/** Sessions with a locked project that wait for the next statement of their worker. */
const OPEN = `select 1 from pg_stat_activity a join pg_locks l on l.pid = a.pid and l.relation = 'projects'::regclass
    and l.mode = 'RowShareLock'
  where a.datname = current_database() and a.state = 'idle in transaction'`;
/** Time for the statements that a stopped worker had already sent. */
const CARRIED_OUT_MS = 60;

/** Stops `worker` during a batch that has locked a project. */
export async function freezeInBatch(
  worker: Pick<Worker, 'freeze' | 'thaw'>,
  query: (text: string) => Promise<Row[]>,
): Promise<void> {
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    worker.freeze();
    if ((await query(OPEN)).length > 0) {
      await sleep(CARRIED_OUT_MS);
      const stays = `${OPEN} and a.state_change < clock_timestamp() - interval '${CARRIED_OUT_MS - 10} ms'`;
      if ((await query(stays)).length > 0) return;
    }
    worker.thaw();
    await sleep(tries % 7);
  }
  throw new Error('the worker was never caught with a batch open');
}

/** `program`: the folder of another checkout to run, for comparison. */
export async function measureHungWorker(
  cluster: Cluster,
  rounds: number,
  program?: string,
): Promise<HungWorkerFigures> {
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-hung-'));
  const databaseUrl = await cluster.createDatabase();
  const workers = await Workers.start({
    databaseUrls: [databaseUrl, databaseUrl],
    dataDir,
    flags: ['--requests-per-second-max', '0'],
  });
  const [hung, healthy] = workers.all as [Worker, Worker];
  if (program !== undefined) {
    for (const worker of workers.all) {
      await worker.end('SIGTERM');
      worker.program = program;
      await worker.start();
    }
  }
  const noted: Noted = { answers: [], waiting: new Set() };
  const { answers, waiting } = noted;
  const stop = new AbortController();
  const { signal } = stop;
  const query = (text: string) => cluster.query(text, [], new URL(databaseUrl).pathname.slice(1));
  const running = [
    ...times(2 * PUBLISHERS, () => publishAll(hung, LOCKED, true, signal)),
    ...times(PUBLISHERS, () => publishAll(healthy, LOCKED, true, signal, noting(noted, 'locked'))),
    ...times(PUBLISHERS, () => publishAll(healthy, OTHER, true, signal, noting(noted, 'others'))),
    ...times(PUBLISHERS, () => publishAll(healthy, OTHER, false, signal, noting(noted, 'others'))),
    askAll(healthy, signal, noting(noted, 'others')),
  ];
  const figures: HungWorkerFigures = { others: { count: 0, p99Ms: 0, maxMs: 0 }, gapMs: 0, refused: 0 };
  const ofOthers: number[] = [];
  try {
    for (let round = 0; round < rounds; round += 1) {
      await sleep(SETTLES_MS);
      answers.length = 0;
      await freezeInBatch(hung, query);
      const fromMs = performance.now();
      await sleep(HANGS_MS);
      const waitedMs = [...waiting].map(({ sinceMs }) => performance.now() - sinceMs);
      const during = answers.filter(({ atMs }) => atMs >= fromMs);
      hung.thaw();
      figures.refused += during.filter(({ isOk }) => !isOk).length;
      ofOthers.push(...during.filter(({ of }) => of === 'others').map(({ tookMs }) => tookMs), ...waitedMs);
      const done = during.filter(({ of, isOk }) => of === 'locked' && isOk).map(({ atMs }) => atMs);
      figures.gapMs = Math.max(figures.gapMs, longestGap([fromMs, ...done, fromMs + HANGS_MS]));
    }
  } finally {
    stop.abort();
    await Promise.all(running);
    await workers.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
  ofOthers.sort((a, b) => a - b);
  const at = (share: number) => ofOthers[Math.min(ofOthers.length - 1, Math.floor(ofOthers.length * share))] ?? NaN;
  return { ...figures, others: { count: ofOthers.length, p99Ms: at(0.99), maxMs: at(1) } };
}

function times<T>(count: number, make: () => T): T[] {
  return Array.from({ length: count }, make);
}

function longestGap(times: readonly number[]): number {
  return times.reduce((longest, time, index) => Math.max(longest, time - (times[index - 1] ?? time)), 0);
}

/** Called with each request. The returned function is called with the response. */
type Note = () => (isOk: boolean) => void;

const noting =
  ({ answers, waiting }: Noted, of: Answered['of']): Note =>
  () => {
    const asked = { sinceMs: performance.now() };
    if (of === 'others') waiting.add(asked);
    return (isOk) => {
      const atMs = performance.now();
      waiting.delete(asked);
      answers.push({ of, atMs, tookMs: atMs - asked.sinceMs, isOk });
    };
  };

async function publishAll(
  { url }: Worker,
  token: string,
  isInLane: boolean,
  signal: AbortSignal,
  note?: Note,
): Promise<void> {
  const lane = { 'upstash-flow-control-key': 'k', 'upstash-flow-control-value': 'parallelism=1' };
  const headers = { authorization: `Bearer ${token}`, 'upstash-delay': '1h', ...(isInLane && lane) };
  await repeat(() => fetch(`${url}/v2/publish/https://a.example/`, { method: 'POST', headers, signal }), signal, note);
}

async function askAll({ url }: Worker, signal: AbortSignal, note: Note): Promise<void> {
  await repeat(() => fetch(`${url}/readyz`, { signal }), signal, note);
}

async function repeat(ask: () => Promise<Response>, signal: AbortSignal, note: Note = () => () => {}): Promise<void> {
  while (!signal.aborted) {
    const noteAnswer = note();
    try {
      const response = await ask();
      await response.arrayBuffer();
      noteAnswer(response.ok);
    } catch {
      if (!signal.aborted) noteAnswer(false);
    }
    await sleep(5);
  }
}
