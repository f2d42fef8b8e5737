/** Checks, when all work is finished, that each project is in exactly one cell, and that moves affected no other project. */
import type { CellId, Millis } from '../../../src/engine/model.ts';
import type { Driver } from '../../../src/store/driver.ts';
import { PLACEMENT } from '../../../src/store/operations/locking/placement.ts';
import { checkInvariants } from '../../../src/store/operations/reports/invariants.ts';
import { isNothing, rowsOf } from '../../store/move/project/cells-world.ts';
import type { World } from '../world.ts';
import type { Movers } from './movers.ts';
import { cellsOf } from './open.ts';

const NUMBERS_OF_CELL = 2 ** 43;
/** The number of ranges of a cell: for keys and tokens, for log entries, and for queues. */
const RANGES = 3;
/** The time within which workers open a cell again after it was unreachable. They retry with backoff. */
const AFTERMATH_MS = 30_000;

export async function checkCells(world: World, movers: Movers): Promise<void> {
  const [directory] = world.databases;
  if (!directory) return;
  const cells = await cellsOf(directory.driver);
  for (const [index, { driver }] of world.databases.entries()) {
    const rows = await driver.read((queries) =>
      queries.query<{ id: number; placement: number }>('select id, placement from projects order by id'),
    );
    const placements = new Map(rows.map(({ id, placement }) => [id, placement]));
    for (const [projectId, cell] of cells) {
      const placement = placements.get(projectId) ?? PLACEMENT.elsewhere;
      const expected = cell === index + 1 ? PLACEMENT.here : PLACEMENT.elsewhere;
      if (placement !== expected)
        world.violate('P3', `project ${projectId} lives in cell ${cell}, and is ${placement} in cell ${index + 1}`);
      if (expected === PLACEMENT.elsewhere && !isNothing(await rowsOf({ driver }, projectId)))
        world.violate('P3', `rows of project ${projectId}, which lives in cell ${cell}, are in cell ${index + 1}`);
    }
    await checkNumbers(world, driver, index + 1);
    for (const { statement, offenders } of await driver.read(checkInvariants)) {
      if (offenders.length > 0) world.violate('P3', `cell ${index + 1}: ${statement} But: ${offenders.join(', ')}`);
    }
  }
  checkOthers(world, movers);
}

/** Each cell assigns numbers of its own range only, because rows move between cells. */
async function checkNumbers(world: World, driver: Driver, cellId: CellId): Promise<void> {
  const rows = await driver.read((queries) =>
    queries.query<{ name: string; next: number }>('select name, next from numbers where until is not null'),
  );
  if (rows.length !== RANGES) world.violate('P3', `cell ${cellId} has ${rows.length} ranges of numbers`);
  for (const { name, next } of rows) {
    const isOwn = next > (cellId - 1) * NUMBERS_OF_CELL && next <= cellId * NUMBERS_OF_CELL;
    if (!isOwn) world.violate('P3', `cell ${cellId} has come to ${next} in its ${name}`);
  }
}

/** Without faults, workers end the pause of an interrupted move within this time. */
const SERVED_AGAIN_MS = 30_000;

/** A publish to a project that is not being moved is rejected only during faults of its cell. */
function checkOthers(world: World, movers: Movers): void {
  /** The time since which there was no fault, and no worker started or stopped. */
  const quietSince = (atMs: Millis) =>
    Math.max(
      0,
      ...world.databaseFaults.flatMap(({ fromMs, untilMs }) => (fromMs <= atMs ? [Math.min(untilMs, atMs)] : [])),
      ...world.ends.flatMap((end) => (end.atMs <= atMs ? [end.atMs] : [])),
      ...world.transitions.flatMap(({ fromMs, untilMs }) => (fromMs <= atMs ? [Math.min(untilMs, atMs)] : [])),
    );
  for (const { projectId, cellId, result, startAtMs, endedAtMs } of world.ledger.publishes) {
    if (projectId === undefined || cellId === undefined || result !== 'rejected') continue;
    const isExplained =
      movers.moves.some(
        (move) =>
          move.projectId === projectId &&
          move.fromMs <= endedAtMs &&
          Math.max(move.toMs, quietSince(startAtMs)) + SERVED_AGAIN_MS >= startAtMs,
      ) ||
      world.databaseFaults.some(
        ({ database, fromMs, untilMs }) =>
          database === world.databases[cellId - 1] && fromMs <= endedAtMs && untilMs + AFTERMATH_MS >= startAtMs,
      ) ||
      world.transitions.some(({ fromMs, untilMs }) => fromMs <= endedAtMs && untilMs + 1_000 >= startAtMs);
    if (!isExplained) world.violate('P9', `project ${projectId} in cell ${cellId} was refused at ${startAtMs}`);
  }
}
