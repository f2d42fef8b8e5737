/**
 * Kills the real server repeatedly at random moments under mixed load, and checks its promises P1 to P7 (docs/architecture.md).
 * `npm test` runs it with a few kills. For more: `node test/crash/kill-loop.ts --kills 100 --seed 7`.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Exit, ListeningProcess } from '../../bench/child-process.ts';
import { startWaypost } from '../../bench/waypost-process.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { Client } from './client.ts';
import { findingsOfDoctor, integrity, untilEmpty } from './database-file.ts';
import { type Endpoints, openEndpoints } from './endpoints.ts';
import { fullLanes, more, type Need, underLoad, untilEnough } from './enough.ts';
import { inWords } from './findings.ts';
import { type Judgement, judge } from './judge.ts';
import { LANES, LaneLoad } from './lane-load.ts';
import { Ledger } from './ledger.ts';
import { type Load, prepareMixedLoad, runMixedLoad } from './mixed-load.ts';

export interface KillLoopOptions {
  /** The number of times that the server is ended under load before it may finish undisturbed. */
  kills: number;
  seed: number;
  /** SIGKILL prevents any cleanup; SIGTERM requests a graceful drain. */
  signal: 'SIGKILL' | 'SIGTERM';
  /**
   * The random amount of work between two kills. With less work, kills hit only the start of a server; more work finds
   * nothing new.
   */
  life?: { min: number; max: number };
  /** More settings of the server, as flags. */
  flags?: string[];
  /** The time limit after the last start for all messages to end. */
  settleLimitMs?: number;
}

export interface KillLoopReport extends Judgement {
  seed: number;
  /** The exit of each killed server. */
  exits: Exit[];
  /** The exit of the last server, which was not killed. */
  lastExit: Exit;
  /** The time from the last start of a server to its first delivery, in milliseconds. */
  restartToDeliveryMs: number;
  /** The result of `PRAGMA integrity_check` for the file at the end. */
  integrity: string[];
  /** The findings of `waypost doctor`, after each kill and at the end. */
  doctor: string[];
}

// Enough concurrent operations that each kill hits some of every kind.
const WORKERS = 20;
const PAUSE_MS = 6;
// Not a target, only the limit of the wait.
const FIRST_DELIVERY_LIMIT_MS = 20_000;
/** The amount of work between two kills: the number of acknowledged publishes and arrived attempts. */
const LIFE = { min: 0, max: 150 };

export async function runKillLoop(options: KillLoopOptions): Promise<KillLoopReport> {
  const { flags = [], life = LIFE } = options;
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-crash-'));
  const ledger = new Ledger();
  const endpoints = await openEndpoints(ledger);
  const random = new SeededRandom(options.seed);
  const load = new WholeLoad(
    { ledger, endpoints, random, workers: WORKERS, pauseMs: PAUSE_MS },
    flags.includes('--memory'),
  );
  let server: ListeningProcess | undefined;
  try {
    const exits: Exit[] = [];
    const doctor: string[] = [];
    for (let kill = 0; kill < options.kills; kill += 1) {
      server = await startWaypost({ dataDir, flags });
      exits.push(await endUnderLoad(server, load, random.int(life.min, life.max), options.signal));
      await endpoints.nextIncarnation();
      for (const finding of await findingsOfDoctor(dataDir)) doctor.push(`after ending ${kill + 1}: ${finding}`);
    }
    const restartedAt = performance.now();
    server = await startWaypost({ dataDir, flags });
    const client = new Client(server.url);
    await load.prepare(client);
    const [restartToDeliveryMs] = await Promise.all([
      untilDelivery(server, ledger, endpoints).then(() => performance.now() - restartedAt),
      load.during(client, (assertSound) => untilEnough(enoughOf(ledger, options.kills, life), assertSound)),
    ]);
    await load.calmDown(client);
    await untilEmpty(dataDir, options.settleLimitMs);
    const judgement = await judge(ledger, client);
    await client.close();
    const lastExit = await server.end('SIGTERM');
    doctor.push(...(await findingsOfDoctor(dataDir)));
    return {
      ...judgement,
      seed: options.seed,
      exits,
      lastExit,
      restartToDeliveryMs,
      integrity: integrity(dataDir),
      doctor,
    };
  } finally {
    await server?.end('SIGKILL');
    await endpoints.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** The load on one server after another. */
class WholeLoad {
  readonly #load: Load;
  readonly #lanes: LaneLoad;
  readonly #isForgotten: boolean;
  #isPrepared = false;

  /** `isForgotten`: each server loses the prepared queues and groups. */
  constructor(load: Load, isForgotten: boolean) {
    this.#load = load;
    this.#lanes = new LaneLoad(load);
    this.#isForgotten = isForgotten;
  }

  /** The number of acknowledged publishes and arrived attempts, which only grows. */
  progress(): number {
    return this.#load.ledger.progress();
  }

  async prepare(client: Client): Promise<void> {
    if (this.#isPrepared && !this.#isForgotten) return;
    await prepareMixedLoad(this.#load, client);
    await this.#lanes.prepare(client);
    this.#isPrepared = true;
  }

  during(client: Client, act: (assertSound: () => void) => Promise<void>): Promise<void> {
    return underLoad((signal) => this.#run(client, signal), act);
  }

  calmDown(client: Client): Promise<void> {
    return this.#lanes.calmDown(client);
  }

  async #run(client: Client, signal: AbortSignal): Promise<void> {
    await Promise.all([runMixedLoad(this.#load, client, signal), this.#lanes.run(client, signal)]);
  }
}

async function endUnderLoad(
  server: ListeningProcess,
  load: WholeLoad,
  life: number,
  signal: 'SIGKILL' | 'SIGTERM',
): Promise<Exit> {
  const client = new Client(server.url);
  await load.prepare(client);
  let ended: Promise<Exit> | undefined;
  await load.during(client, async (assertSound) => {
    await untilEnough([more('things done', () => load.progress(), life)], assertSound);
    ended = server.end(signal);
  });
  await client.close();
  return ended ?? server.exited;
}

/** The work that must be done before the last server may end: a run with little work proves little. */
function enoughOf(ledger: Ledger, kills: number, { max }: { max: number }): Need[] {
  return [
    { what: 'things done', count: () => ledger.progress(), atLeast: kills * max },
    { what: 'acknowledged', count: () => ledger.acks, atLeast: (kills * max) / 4 },
    { what: 'callbacks taken', count: () => ledger.taken, atLeast: 10 },
    { what: 'callbacks that are always rejected', count: () => ledger.refusedForGood, atLeast: 3 },
    fullLanes(LANES, ledger),
  ];
}

/** Descriptions of all problems; empty after a sound run. */
export function findingsOf(report: KillLoopReport): string[] {
  return inWords({
    ...report.broken,
    doctor: report.doctor,
    integrity: report.integrity.filter((line) => line !== 'ok'),
  });
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
  if (findingsOf(report).length > 0) process.exitCode = 1;
}
