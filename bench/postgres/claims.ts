/**
 * Measures claims with a million due messages while PostgreSQL's statistics describe empty tables and nothing is vacuumed:
 * with one worker, then with two at the same time, then with one during a long transaction, whose old snapshot keeps
 * every dead row visible.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { systemClock } from '../../src/system/system.ts';
import type { Cluster } from '../../test/support/postgres/cluster.ts';
import type { Figure } from '../figure.ts';
import { quantile } from '../statistics.ts';
import { freshDatabase, onDatabase, startDatabaseServer } from './database.ts';
import { openBenchStore, storeDue } from './due-messages.ts';

export interface ClaimsOptions {
  /** Messages that are due before the first claim. */
  messages: number;
  /** Unmeasured claims of each worker before the measurement: compilation, connections and prepared statements. */
  warmUpClaims: number;
  /** Claims of each worker. Claimed messages are settled before the next claim. */
  claims: number;
  /** Messages per claim. */
  limit: number;
}

/** `limit` is the limit of a dispatcher with free slots. */
export const DEFAULT_CLAIMS: ClaimsOptions = { messages: 1_000_000, warmUpClaims: 20, claims: 500, limit: 128 };

/** The report of a worker process. */
export interface ClaimTimes {
  claimMs: number[];
  settleMs: number[];
  claimed: number;
}

const CLAIMER = fileURLToPath(new URL('./claimer.ts', import.meta.url));

export async function measureClaims(options: ClaimsOptions): Promise<Figure[]> {
  const server = await startDatabaseServer({ autovacuum: 'off' });
  try {
    const { url } = await freshDatabase(server);
    const acceptedPerSecond = await fill(url, options.messages);
    const alone = await claimAtOnce(url, 1, options);
    const together = await claimAtOnce(url, 2, options);
    const oldSnapshot = await withOldSnapshot(server, url, () => claimAtOnce(url, 1, options));
    const due = `${options.messages} due, stale statistics`;
    return [
      { name: 'messages accepted per second during storing', value: acceptedPerSecond, unit: 'messages/s' },
      ...figuresOf(`${due}, one worker`, alone),
      ...figuresOf(`${due}, two workers`, together),
      ...figuresOf(`${due}, old snapshot`, oldSnapshot),
    ];
  } finally {
    await server.dispose();
  }
}

/** Statistics are collected while the tables are empty, and never again. */
async function fill(url: string, messages: number): Promise<number> {
  const store = await openBenchStore(url);
  try {
    await onDatabase(url, (client) => client.query('analyze'));
    const startedAt = performance.now();
    await storeDue(store, messages, systemClock.nowMs());
    return messages / ((performance.now() - startedAt) / 1_000);
  } finally {
    await store.close();
  }
}

async function claimAtOnce(url: string, workers: number, options: ClaimsOptions): Promise<ClaimTimes> {
  const all = await Promise.all(Array.from({ length: workers }, () => runClaimer(url, options)));

  const claimed = all.reduce((sum, each) => sum + each.claimed, 0);
  if (claimed !== workers * options.claims * options.limit) throw new Error(`only ${claimed} messages were claimed`);
  return {
    claimMs: all.flatMap(({ claimMs }) => claimMs),
    settleMs: all.flatMap(({ settleMs }) => settleMs),
    claimed,
  };
}

async function runClaimer(url: string, { warmUpClaims, claims, limit }: ClaimsOptions): Promise<ClaimTimes> {
  const child = fork(CLAIMER, [url, ...[warmUpClaims, claims, limit].map(String)], { serialization: 'advanced' });
  const exited = once(child, 'exit');
  const first = await Promise.race([once(child, 'message') as Promise<[ClaimTimes]>, exited]);
  const [times] = first;
  if (typeof times !== 'object' || times === null) throw new Error(`a worker exited with ${String(times)}`);
  await exited;
  return times as ClaimTimes;
}

async function withOldSnapshot<T>(server: Cluster, url: string, work: () => Promise<T>): Promise<T> {
  return onDatabase(url, async (client) => {
    await client.query('begin isolation level repeatable read');
    await client.query('select pg_current_xact_id()');
    await server.query('checkpoint');
    try {
      return await work();
    } finally {
      await client.query('rollback');
    }
  });
}

function figuresOf(name: string, { claimMs, settleMs }: ClaimTimes): Figure[] {
  return [
    { name: `claim p50, ${name}`, value: quantile(claimMs, 0.5), unit: 'ms' },
    { name: `claim p95, ${name}`, value: quantile(claimMs, 0.95), unit: 'ms' },
    { name: `claim p99, ${name}`, value: quantile(claimMs, 0.99), unit: 'ms' },
    { name: `settle p95, ${name}`, value: quantile(settleMs, 0.95), unit: 'ms' },
  ];
}
