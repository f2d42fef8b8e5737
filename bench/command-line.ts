/** Measures how fast each command prints its help, and whether `waypost logs -f` keeps up with thousands of new log entries per second. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { COMMANDS } from '../src/cli/commands.ts';
import { delayedItem, storeInBatches } from './batches.ts';
import type { Figure } from './figure.ts';
import { median, quantile } from './statistics.ts';
import { DEVELOPMENT_TOKEN, startWaypost } from './waypost-process.ts';

export const DEFAULT_COMMAND_LINE = { rounds: 5, seconds: 20, perSecond: 2_000 };

const CLI = join(import.meta.dirname, '../bin/waypost.js');
/** Entries are published in batches: one request each, this many per second. */
const BATCHES_PER_SECOND = 10;

export async function measureCommandLine(workload: typeof DEFAULT_COMMAND_LINE): Promise<Figure[]> {
  return [...(await measureHelp(workload.rounds)), ...(await measureFollowing(workload))];
}

/** Measures, in alternation, the start of each command and of a Node process that does nothing. */
async function measureHelp(rounds: number): Promise<Figure[]> {
  const times: { words: string[]; ms: number[] }[] = [];
  const bareMs: number[] = [];
  for (const [name, [, load]] of Object.entries(COMMANDS)) {
    for (const verb of Object.keys((await load()).verbs ?? { '': '' })) {
      const words = [name, verb].filter((word) => word !== '');
      times.push({ words, ms: Array.from({ length: rounds }, () => startOf([CLI, ...words, '--help'])) });
      bareMs.push(startOf(['-e', '0']));
    }
  }
  const all = times.flatMap(({ ms }) => ms);
  const slowest = times.reduce((one, other) => (median(other.ms) > median(one.ms) ? other : one));
  const bareReference = (q: number) => ({ name: 'node -e 0', value: quantile(bareMs, q) });
  return [
    {
      name: `help of ${times.length} commands, p50`,
      value: quantile(all, 0.5),
      unit: 'ms',
      reference: bareReference(0.5),
    },
    { name: 'help of all commands, p95', value: quantile(all, 0.95), unit: 'ms', reference: bareReference(0.95) },
    {
      ...{ name: `help of the slowest (${slowest.words.join(' ')}), p50`, value: median(slowest.ms), unit: 'ms' },
      reference: bareReference(0.5),
    },
  ];
}

/** Milliseconds from the start of `node <args>` to its exit. */
function startOf(args: string[]): number {
  const startedAt = performance.now();
  const { status } = spawnSync(process.execPath, args);
  if (status !== 0) throw new Error(`${args.join(' ')} exited with ${status}`);
  return performance.now() - startedAt;
}

/** Each published message adds one entry. Measures the delay from the entry's time to its line of output. */
async function measureFollowing({ seconds, perSecond }: typeof DEFAULT_COMMAND_LINE): Promise<Figure[]> {
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-following-'));
  const server = await startWaypost({ dataDir });
  const env = { ...process.env, QSTASH_URL: server.url, QSTASH_TOKEN: DEVELOPMENT_TOKEN };
  const follower = spawn(process.execPath, [CLI, 'logs', '-f', '--json'], { env });
  const ended = new Promise((resolve) => follower.once('close', resolve));
  try {
    await new Promise((resolve) => follower.stderr.once('data', resolve)); // the first output: the follower has started
    const lags: number[] = [];
    const seen = new Set<string>();
    createInterface({ input: follower.stdout }).on('line', (line) => {
      const { id, time } = JSON.parse(line) as { id: string; time: number };
      seen.add(id);
      lags.push(Date.now() - time);
    });
    const startedAt = performance.now();
    const batch = perSecond / BATCHES_PER_SECOND;
    for (let n = 1; n <= seconds * BATCHES_PER_SECOND; n += 1) {
      await storeInBatches(server, batch, () => delayedItem('http://127.0.0.1:9'), batch);
      await sleep(Math.max(0, startedAt + (n * 1_000) / BATCHES_PER_SECOND - performance.now()));
    }
    const took = (performance.now() - startedAt) / 1_000;
    const count = seconds * perSecond;
    for (const until = performance.now() + 10_000; seen.size < count && performance.now() < until; ) await sleep(10);
    return [
      { name: 'log entries per second', value: count / took, unit: 'messages/s' },
      { name: 'entries missing', value: count - seen.size, unit: 'messages' },
      { name: 'entries printed twice', value: lags.length - seen.size, unit: 'messages' },
      { name: 'delay from entry to output, p50', value: quantile(lags, 0.5), unit: 'ms' },
      { name: 'delay from entry to output, p99', value: quantile(lags, 0.99), unit: 'ms' },
    ];
  } finally {
    follower.kill('SIGTERM');
    await ended;
    await server.end('SIGTERM');
    rmSync(dataDir, { recursive: true });
  }
}
