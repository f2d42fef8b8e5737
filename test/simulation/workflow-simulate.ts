/**
 * Simulates a world of workflows from one seed: first with faults of the server, its network and the endpoints, then without,
 * until each run has ended. All promises must be kept.
 */
import type { EngineSettings } from '../../src/engine/settings.ts';
import type { StoreLimits } from '../../src/engine/stores.ts';
import { codeOfLogState } from '../../src/store/operations/messages/rows.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { checkCells } from './cells/checks.ts';
import { endMoves } from './cells/disturb.ts';
import { Movers } from './cells/movers.ts';
import { openCellDatabases } from './cells/open.ts';
import { openDatabase } from './database.ts';
import {
  checkEmpty,
  checkIdle,
  faultyPhase,
  reportOf,
  type SimulationOptions,
  type SimulationReport,
} from './simulate.ts';
import { checkUnknownClaims, restartAll } from './workers.ts';
import { checkWorkflows } from './workflow-checks.ts';
import { inspectRuns } from './workflow-inspection.ts';
import { WorkflowWorkload } from './workflow-workload.ts';
import { BODY_BYTES_MAX, World } from './world.ts';

const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Programs sleep and wait for minutes in total, and retry within seconds. */
const FINISH_TIMEOUT_MS = 12 * HOUR_MS;

export async function simulateWorkflows({
  seed,
  steps,
  sabotage = {},
  workers,
  cells,
  driver: empty,
}: SimulationOptions): Promise<SimulationReport> {
  const random = new SeededRandom(seed);
  const drivers = cells === undefined ? [await openDatabase(empty)] : await openCellDatabases(cells, sabotage);
  const shared = workers === undefined ? {} : { workers };
  const [settings, limits] = [drawSettings(random), drawLimits(random)];
  const world = new World({ random, drivers, settings, limits, sabotage, ...shared });
  const workload = new WorkflowWorkload(world, random, sabotage.workflows);
  const movers = cells === undefined ? undefined : new Movers(world, random, sabotage);
  await faultyPhase(world, workload, random, { steps, crashes: [0, 0.002, 0.01], movers });
  world.heal();
  workload.heal();
  if (movers) await endMoves(world, movers);
  await world.clock.advanceBy(60 * SECOND_MS);
  void workload.retryAllFailed();
  if (workers !== undefined) {
    await checkUnknownClaims(world);
    await restartAll(world);
  }
  if ((await waitUntilFinished(world)) && workers === undefined) await checkIdle(world);
  await inspectRuns(world);
  if (movers) await checkCells(world, movers);
  await checkWorkflows(world, workload.notes, workload.deployments);
  const counts = await countAll(world, workload);
  await checkStorage(world);
  return reportOf(seed, world, counts);
}

/** Draws limits that are small enough to be reached often. */
function drawSettings(random: SeededRandom): EngineSettings {
  return {
    inFlightMax: random.int(8, 16),
    inFlightPerOriginMax: random.int(1, 6),
    inFlightBytesMax: 1_000 * BODY_BYTES_MAX,
    deduplicationWindowMs: 10 * 60 * SECOND_MS,
    deliveredGraceMs: 5 * SECOND_MS,
    logRetentionMs: 10 * DAY_MS,
    dlqRetentionMs: 10 * DAY_MS,
    retentionIntervalMs: HOUR_MS,
    publishDelayTargetMs: random.int(20, 200),
    lazyFetchBytes: random.choose([400, 3_000, 100_000]),
    togetherMax: 2,
  };
}

function drawLimits(random: SeededRandom): StoreLimits {
  const parallelismMax = random.chance(0.2) ? random.int(2, 6) : 0;
  return { queuesMax: 0, parallelismMax, messagesPerDayMax: 0, journalBytesMax: 0, cancelledTogetherMax: 1 };
}

async function waitUntilFinished(world: World): Promise<boolean> {
  for (let leftMs = FINISH_TIMEOUT_MS; leftMs > 0; leftMs -= REST_STEP_MS) {
    await world.clock.advanceBy(REST_STEP_MS);
    const active = await world.count(
      'select (select count(*) from runs where state = 1) + (select count(*) from messages) as count',
    );
    if (active === 0) return true;
  }
  return false;
}

const REST_STEP_MS = 10 * 60 * SECOND_MS;

/** P13: no data remains after the retention times. */
async function checkStorage(world: World): Promise<void> {
  world.clock.jumpBy(11 * DAY_MS);
  await world.clock.advanceBy(2 * HOUR_MS);
  await checkEmpty(world, ['runs', 'journal', 'invocations', 'contents', 'logs', 'log_details', 'dead', 'flow_keys']);
}

async function countAll(world: World, { notes }: WorkflowWorkload): Promise<Record<string, number>> {
  const counts: Record<string, number> = {
    ...world.counts,
    jumps: world.jumps.length,
    attempts: world.network.attempts.length,
    triggers: notes.triggers.length,
    endings: notes.endings.length,
    waits: notes.waits.length,
    notifications: notes.notifications.length,
    saved: notes.notifications.filter(({ isSaved }) => isSaved).length,
    fetched: notes.fetched.length,
    held: notes.saved.filter(({ text }) => text !== undefined).length,
    suspended: notes.saved.filter(({ text }) => text === undefined).length,
    handed: notes.handed.length,
    failedWithin: notes.failedWithin,
    lastSteps: notes.lastSteps,
    failuresTold: notes.failureCalls.length,
    parked: await countParked(world),
    revivals: notes.revivals.filter(({ started }) => started).length,
  };
  counts['invokedTogether'] = await world.count(
    'select count(*) as count from (select run_key from invocations group by run_key having count(*) > 1) shared',
  );
  for (const [name, code] of Object.entries({ succeeded: 2, failed: 3, cancelled: 4 })) {
    counts[name] = await world.count(`select count(*) as count from runs where state = ${code}`);
  }
  for (const [name, code] of Object.entries({
    steps: 2,
    plans: 3,
    calls: 4,
    answers: 5,
    registered: 7,
    invocations: 8,
  })) {
    counts[name] = await world.count(`select count(*) as count from journal where kind = ${code}`);
  }
  return counts;
}

/** Counts the messages that were parked because their workflow's code had changed. */
function countParked(world: World): Promise<number> {
  return world.count(
    `select count(distinct message_key) as count from logs where state = ${codeOfLogState('STEP_PARKED')}`,
  );
}
