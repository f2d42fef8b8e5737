/**
 * Kills the real server again and again under mixed load, at random moments, and holds it to its promises: P1, P2,
 * P6 and P7 (docs/architecture.md). In `npm test` with 20 kills; by hand `node test/crash/kill-loop.ts --kills 200 --seed 7`.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Exit, ListeningProcess } from '../../bench/child-process.ts';
import { startWaypost } from '../../bench/waypost-process.ts';
import { SeededRandom } from '../../src/testing/seeded-random.ts';
import { Client } from './client.ts';
import { integrity } from './database-file.ts';
import { type Endpoints, openEndpoints } from './endpoints.ts';
import { readFinalView } from './final-view.ts';
import { Ledger, type Verdict } from './ledger.ts';
import { type MixedLoad, runMixedLoad } from './mixed-load.ts';
import { untilSettled } from './settling.ts';

export interface KillLoopOptions {
  /** How often the server is ended under load before it is left in peace. */
  kills: number;
  seed: number;
  /** SIGKILL leaves no chance to tidy up; SIGTERM asks for a graceful drain. */
  signal: 'SIGKILL' | 'SIGTERM';
  /** More settings of the server, as flags. */
  flags?: string[];
  /** How long the last start may take to bring everything to its end. */
  settleLimitMs?: number;
}

export interface KillLoopReport {
  seed: number;
  verdict: Verdict;
  /** How each killed server ended. */
  exits: Exit[];
  /** How the server ended that was left in peace. */
  lastExit: Exit;
  /** Acknowledged messages that reached no end within the time given after the last restart. */
  unsettled: string[];
  /** From the last spawn to the first delivery after it, in milliseconds. */
  restartToDeliveryMs: number;
  /** What `PRAGMA integrity_check` says of the file that all this left behind. */
  integrity: string[];
}

// Enough operations under way that each kill hits some of every kind.
const WORKERS = 24;
// No figure to reach, only the end of the wait.
const FIRST_DELIVERY_LIMIT_MS = 20_000;
// Shorter kills hit the start itself; longer ones teach nothing new.
const LIFE_MS = { min: 20, max: 400 };

export async function runKillLoop(options: KillLoopOptions): Promise<KillLoopReport> {
  const { flags = [] } = options;
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-crash-'));
  const ledger = new Ledger();
  const endpoints = await openEndpoints(ledger);
  const random = new SeededRandom(options.seed);
  const load = { ledger, endpoints, random, workers: WORKERS };
  let server: ListeningProcess | undefined;
  try {
    const exits: Exit[] = [];
    for (let kill = 0; kill < options.kills; kill += 1) {
      server = await startWaypost({ dataDir, flags });
      exits.push(await endUnderLoad(server, load, random.int(LIFE_MS.min, LIFE_MS.max), options.signal));
      await endpoints.nextIncarnation();
    }
    const restartedAt = performance.now();
    server = await startWaypost({ dataDir, flags });
    const client = new Client(server.url);
    const [restartToDeliveryMs] = await Promise.all([
      untilDelivery(server, ledger, endpoints).then(() => performance.now() - restartedAt),
      shortLoad(load, client),
    ]);
    const unsettled = await untilSettled(ledger, client, options.settleLimitMs);
    const verdict = ledger.judge(await readFinalView(client));
    await client.close();
    const lastExit = await server.end('SIGTERM');
    return {
      seed: options.seed,
      verdict,
      exits,
      lastExit,
      unsettled,
      restartToDeliveryMs,
      integrity: integrity(dataDir),
    };
  } finally {
    await server?.end('SIGKILL');
    await endpoints.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function endUnderLoad(
  server: ListeningProcess,
  load: MixedLoad,
  lifeMs: number,
  signal: 'SIGKILL' | 'SIGTERM',
): Promise<Exit> {
  const client = new Client(server.url);
  const stop = new AbortController();
  const finished = runMixedLoad(load, client, stop.signal);
  await Promise.race([sleep(lifeMs), finished]);
  const ended = server.end(signal);
  stop.abort();
  // Rejects when the load met an answer that the contract does not allow.
  await finished;
  await client.close();
  return ended;
}

/** So that the last incarnation has fresh work beside what it inherited. */
async function shortLoad(load: MixedLoad, client: Client): Promise<void> {
  const stop = new AbortController();
  const finished = runMixedLoad(load, client, stop.signal);
  await Promise.race([sleep(LIFE_MS.max), finished]);
  stop.abort();
  await finished;
}

async function untilDelivery(server: ListeningProcess, ledger: Ledger, endpoints: Endpoints): Promise<void> {
  const isFromThisStart = (arrival: { incarnation: number }) => arrival.incarnation === endpoints.incarnation();
  const limit = performance.now() + FIRST_DELIVERY_LIMIT_MS;
  while (!ledger.arrivals().some(isFromThisStart)) {
    if (performance.now() > limit) {
      throw new Error(`no delivery within ${FIRST_DELIVERY_LIMIT_MS} ms of the last start:\n${server.output()}`);
    }
    await sleep(2);
  }
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      kills: { type: 'string', default: '20' },
      seed: { type: 'string', default: String(process.pid) },
      signal: { type: 'string', default: 'SIGKILL' },
    },
  });
  const signal = values.signal === 'SIGTERM' ? 'SIGTERM' : 'SIGKILL';
  const report = await runKillLoop({ kills: Number(values.kills), seed: Number(values.seed), signal });
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
  const { lost, unexpected, unexplained, notEndedOnce } = report.verdict;
  const findings = [lost, unexpected, unexplained, notEndedOnce, report.unsettled].flat();
  if (findings.length > 0 || report.integrity.join() !== 'ok') process.exitCode = 1;
}
