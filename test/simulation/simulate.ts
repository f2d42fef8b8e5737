/**
 * Simulates the world from one seed: first with faults, then without, until all work is finished. All promises must be kept.
 */

import type { Page, PageRequest } from '../../src/engine/lists/page.ts';
import type { Millis } from '../../src/engine/model.ts';
import type { EngineSettings } from '../../src/engine/settings.ts';
import type { DeadMessage, LogEntry, StoreLimits } from '../../src/engine/stores.ts';
import type { Driver } from '../../src/store/driver.ts';
import { logStateOf } from '../../src/store/operations/messages/rows.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { checkCells } from './cells/checks.ts';
import { disturbCells, endMoves } from './cells/disturb.ts';
import { Movers } from './cells/movers.ts';
import { openCellDatabases } from './cells/open.ts';
import { checkAll, type FinalState } from './checks.ts';
import { openDatabase, storeOver } from './database.ts';
import { inspect } from './inspection.ts';
import { checkUnknownClaims, disturbWorkers, RECOVERY_MS, restartAll } from './workers.ts';
import { Workload } from './workload.ts';
import { BODY_BYTES_MAX, type Sabotage, type Violation, World } from './world.ts';

export interface SimulationOptions {
  seed: number;
  /** The number of actions of clients and faults before the world is healed. */
  steps: number;
  sabotage?: Sabotage;
  /** The number of workers that share the database. If absent, one process uses the database alone. */
  workers?: number;
  /** The number of cells, between which projects are moved. Several workers serve all cells. Default: one cell. */
  cells?: number;
  /**
   * An empty database. Default: SQLite in memory. On a database server, the order of transactions depends on the server,
   * so a seed is not reproducible.
   */
  driver?: Driver;
}

export interface SimulationReport {
  seed: number;
  violations: Violation[];
  /** The last trace lines about the message of the first violation. */
  evidence: string[];
  /** All events, one per line. */
  trace: readonly string[];
  /** The hash of the trace: equal seeds have equal digests. */
  digest: string;
  counts: Record<string, number>;
}

const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Five default backoffs take more than two days, and the clock may have been set back by hours. */
const FINISH_TIMEOUT_MS = 6 * DAY_MS;

export async function simulate(options: SimulationOptions): Promise<SimulationReport> {
  const { seed, steps, sabotage = {}, workers, cells } = options;
  const random = new SeededRandom(seed);
  const drivers = cells === undefined ? [await openDatabase(options.driver)] : await openCellDatabases(cells, sabotage);
  const shared = workers === undefined ? {} : { workers };
  const [settings, limits] = [drawSettings(random), drawLimits(random)];
  const world = new World({ random, drivers, settings, limits, sabotage, ...shared });
  const workload = new Workload(world, random);
  const movers = cells === undefined ? undefined : new Movers(world, random, sabotage);
  const crashes = [0, 0.002, 0.02];
  await faultyPhase(world, workload, random, { steps, crashes, movers, others: workload });
  await healingPhase(world, workload, movers);
  await schedulesPhase(world, workload);
  if (workers === undefined) {
    if (await waitUntilFinished(world)) await checkIdle(world);
    checkAll(world, await finalStateOf(world));
    await checkStorage(world);
  } else {
    await checkUnknownClaims(world);
    await restartAll(world);
    await waitUntilFinished(world);
    if (movers) await checkCells(world, movers);
    checkAll(world, await finalStateOf(world));
  }
  return reportOf(seed, world, countAll(world));
}

/** Draws limits that are small enough to be reached often. */
function drawSettings(random: SeededRandom): EngineSettings {
  // Half of the slots are reserved for healthy endpoints. The other half has capacity for one endpoint more than the
  // moody ones.
  const inFlightMax = random.int(16, 24);
  return {
    inFlightMax,
    backlogsMax: backlogsMaxFor(inFlightMax),
    silentMax: silentMaxFor(inFlightMax),
    inFlightPerOriginMax: random.int(1, 5),
    inFlightBytesMax: random.chance(0.7) ? random.int(16, 32) * BODY_BYTES_MAX : random.int(1, 4) * BODY_BYTES_MAX,
    deduplicationWindowMs: 10 * 60 * SECOND_MS,
    deliveredGraceMs: 5 * SECOND_MS,
    logRetentionMs: 10 * DAY_MS,
    dlqRetentionMs: 10 * DAY_MS,
    retentionIntervalMs: HOUR_MS,
    publishDelayTargetMs: random.int(20, 200),
    lazyFetchBytes: 3 * 1024 * 1024,
  };
}

/** With a third of the seeds, the limit of silent attempts is reached. Not drawn, so that known seeds stay unchanged. */
function silentMaxFor(inFlightMax: number): number {
  return inFlightMax % 3 === 0 ? Math.ceil(inFlightMax / 2) : 8 * inFlightMax;
}

/** With half of the seeds, a project's second backlog is not in memory. Not drawn, so that known seeds stay unchanged. */
function backlogsMaxFor(inFlightMax: number): number {
  return inFlightMax % 2 === 0 ? 1 : 10_000;
}

/** Draws limits of the project, usually none: a limited project hides the other limits. */
function drawLimits(random: SeededRandom): StoreLimits {
  return {
    queuesMax: random.chance(0.2) ? 2 : 0,
    parallelismMax: random.chance(0.3) ? random.int(1, 6) : 0,
    messagesPerDayMax: 0,
    journalBytesMax: 0,
  };
}

interface FaultyPhase {
  steps: number;
  /** The possible probabilities of a crash per transaction, of which one is drawn. */
  crashes: readonly number[];
  movers: Movers | undefined;
  /** The workload of projects that are moved. */
  others?: Workload;
}

export async function faultyPhase(
  world: World,
  workload: { step(): void; pauseMs(): Millis },
  random: SeededRandom,
  { steps, crashes, movers, others }: FaultyPhase,
): Promise<void> {
  void world.start();
  await world.clock.runUntil(() => world.isUp, SECOND_MS);
  world.faults = {
    crashPerTransaction: random.choose(crashes),
    crashPerOutcome: random.choose([0, 0.01]),
    commitMsMax: random.choose([0, 5, 50]),
  };
  const disturb = world.isShared ? disturbWorkers(world, random) : () => {};
  const disturbMoves = movers ? disturbCells(world, movers, random, others) : () => {};
  for (let step = 0; step < steps; step += 1) {
    workload.step();
    disturb();
    disturbMoves();
    await world.clock.advanceBy(workload.pauseMs());
  }
}

/**
 * Heals the world, then kills the server again and checks that its messages in flight are sent again (P7), except those with
 * a flow-control key, which may have to wait.
 */
async function healingPhase(world: World, workload: Workload, movers: Movers | undefined): Promise<void> {
  world.heal();
  workload.heal();
  if (movers) await endMoves(world, movers);
  await world.clock.runUntil(() => world.isUp, 60 * SECOND_MS);
  await world.clock.advanceBy(SECOND_MS); // until calls in progress have ended
  // A pause in a hanging worker is saved when the worker continues, so a lane that was resumed earlier would stay paused.
  await world.clock.runUntil(() => !world.ledger.isLaneCallPending, 60 * SECOND_MS);
  while (await hasClosedLanes(world)) {
    // A server that is shutting down may die before it responds; then the next server is called.
    void workload.openLanes();
    await world.clock.advanceBy(SECOND_MS);
    await world.clock.runUntil(() => world.isUp, 60 * SECOND_MS);
  }
  if (!world.isShared) await checkUnknownClaims(world); // several workers may take longer to find orphaned claims
  void workload.schedules.plantFresh();
  await world.clock.advanceBy(SECOND_MS);
  void workload.burst();
  await world.clock.advanceBy(20);
  const dead = world.crash('to see what comes back') ?? '';
  const owned = await world.queryAll<{ id: string }>(
    `select c.id from messages m join contents c on c.key = m.key
     where m.worker = '${dead}' and m.cancel_requested_at_ms is null and m.flow_key is null`,
  );
  const crashedAt = world.trace.length;
  await world.clock.runUntil(() => world.isUp, 60 * SECOND_MS);
  await world.clock.advanceBy(RECOVERY_MS);
  const seen = world.network.attempts.filter((attempt) => (world.startOf.get(attempt)?.at ?? 0) >= crashedAt);
  const sent = new Set(seen.map((attempt) => attempt.messageId));
  for (const { id } of owned) {
    if (!sent.has(id)) world.violate('P7', 'in flight when the process died, and not sent again', id);
  }
}

/** Lets the schedules continue for a while without faults, then ends them, so that all work can finish. */
async function schedulesPhase(world: World, workload: Workload): Promise<void> {
  let active = await activeSchedules(world);
  if (active.length > 0) await world.clock.advanceBy(SCHEDULES_PHASE_MS);
  await inspect(world);
  for (let leftMs = END_TIMEOUT_MS; active.length > 0; active = await activeSchedules(world)) {
    if (leftMs <= 0) return world.violate('P16', `nothing ends the schedules ${active.join()}`);
    void workload.schedules.endAll(active);
    await world.clock.advanceBy(SECOND_MS);
    leftMs -= SECOND_MS;
  }
}

async function activeSchedules(world: World): Promise<string[]> {
  const rows = await world.queryAll<{ id: string }>('select id from schedules where paused = 0 order by key');
  return rows.map(({ id }) => id);
}

/** The time limit to end all schedules: a row left behind by a move is never ended, since no command reaches it. */
const END_TIMEOUT_MS: Millis = 60 * SECOND_MS;
/** Long enough for a few triggers of each schedule. */
const SCHEDULES_PHASE_MS: Millis = 400 * SECOND_MS;

async function hasClosedLanes(world: World): Promise<boolean> {
  const closed = await world.queryAll<{ name: string }>(
    `select name from queues where paused = 1 and deleted = 0
     union all select key as name from flow_keys where paused = 1 or parallelism_pinned = 1 or rate_pinned = 1`,
  );
  return closed.length > 0;
}

async function waitUntilFinished(world: World): Promise<boolean> {
  for (let leftMs = FINISH_TIMEOUT_MS; leftMs > 0; leftMs -= HOUR_MS) {
    if ((await unfinishedIds(world)).length === 0) return true;
    await world.clock.advanceBy(HOUR_MS);
  }
  return false;
}

async function unfinishedIds(world: World): Promise<string[]> {
  const rows = await world.queryAll<{ id: string }>('select c.id from messages m join contents c on c.key = m.key');
  return rows.map(({ id }) => id);
}

/** P12: while no message is due, the store gets no calls. */
export async function checkIdle(world: World): Promise<void> {
  await world.clock.advanceBy(60 * SECOND_MS);
  const before = world.driverCalls;
  await world.clock.advanceBy(HOUR_MS - SECOND_MS);
  // This time includes at most one round of retention, and the next time of an ended schedule.
  const calls = world.driverCalls - before;
  if (calls > RETENTION_ROUND_CALLS + (world.ledger.scheduleCalls.length > 0 ? 1 : 0))
    world.violate('P12', `${calls} calls to the store in an idle hour`);
}

const RETENTION_ROUND_CALLS = 1;

async function finalStateOf(world: World): Promise<FinalState> {
  const logs: LogEntry[] = [];
  const dead: DeadMessage[] = [];
  for (const { driver } of world.databases) {
    const store = storeOver(driver);
    for (const { projectId } of await store.projects.listProjects()) {
      try {
        logs.push(...(await all<LogEntry>((page) => store.logs.listLogs({ projectId, filter: {}, page }))));
        dead.push(...(await all<DeadMessage>((page) => store.dead.listDead({ projectId, filter: {}, page }))));
      } catch (error) {
        world.violate('P11', `what is left of project ${projectId} cannot be read: ${String(error)}`);
      }
    }
  }
  const contents = await world.queryAll<{ key: number; id: string }>('select key, id from contents');
  const idByKey = new Map(contents.map(({ key, id }) => [key, id]));
  return {
    logs,
    dead,
    unfinished: await unfinishedIds(world),
    changes: world.logged.flatMap(({ messageKey, state }) => {
      const id = idByKey.get(messageKey);
      return id === undefined ? [] : [{ id, state: logStateOf(state) }];
    }),
  };
}

async function all<T>(list: (page: PageRequest) => Promise<Page<T>>): Promise<T[]> {
  const { items } = await list({ count: 1_000_000, order: 'earliestFirst' });
  return items;
}

/** P13: no data remains after the retention times. */
async function checkStorage(world: World): Promise<void> {
  await world.clock.advanceBy(DAY_MS);
  world.clock.jumpBy(10 * DAY_MS);
  await world.clock.advanceBy(2 * HOUR_MS);
  await checkEmpty(world, ['messages', 'contents', 'logs', 'log_details', 'dead', 'deduplications', 'flow_keys']);
  const deleted = await world.queryAll<{ name: string }>('select name from queues where deleted = 1');
  for (const { name } of deleted) world.violate('P13', `the deleted queue ${name} is left`);
}

export async function checkEmpty(world: World, tables: readonly string[]): Promise<void> {
  for (const table of tables) {
    const count = await world.count(`select count(*) as count from ${table}`);
    if (count > 0) world.violate('P13', `${count} rows are left in ${table}`);
  }
}

function countAll({ network, counts, ledger, jumps, databases }: World): Record<string, number> {
  return {
    ...counts,
    jumps: jumps.length,
    publishes: ledger.publishes.length,
    ...(databases.length > 1 && {
      publishesForOthers: ledger.publishes.filter(({ projectId }) => projectId !== undefined).length,
    }),
    attempts: network.attempts.length,
    callbackAttempts: network.attempts.filter(({ url }) => url.endsWith('?callback')).length,
    failureCallbackAttempts: network.attempts.filter(({ url }) => url.endsWith('?failureCallback')).length,
    queueCalls: ledger.queueCalls.length,
    keyCalls: ledger.keyCalls.length,
    scheduleCalls: ledger.scheduleCalls.length,
    triggers: ledger.triggers.length,
    staleTriggers: ledger.triggers.filter(({ isStale }) => isStale).length,
    groupCalls: ledger.groupCalls.length,
    groupPublishes: ledger.groupPublishes.length,
  };
}

export function reportOf(seed: number, { violations, trace }: World, counts: Record<string, number>): SimulationReport {
  const evidence = trace.about(violations[0]?.messageId ?? '', 30);
  return { seed, violations, evidence, trace: trace.lines, digest: trace.digest(), counts };
}
