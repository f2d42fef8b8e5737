/** Implements `waypost projects move`: moves a project to another cell while both cells are in use. */

import { waitForConfirmations } from '../../admin/socket/wait-for-confirmations.ts';
import type { Config } from '../../config/table.ts';
import type { CellId, ProjectId } from '../../engine/model.ts';
import { randomBase58 } from '../../protocol/ids.ts';
import { LogPartitions } from '../../store/drivers/postgres/log-partitions.ts';
import { MoveRefused } from '../../store/move/progress.ts';
import { CannotStart } from '../../system/cannot-start.ts';
import { systemClock } from '../../system/system.ts';
import { MoveLease } from '../move/move-lease.ts';
import { cancelProjectMove, type MoveProjectOptions, type MoveResult, moveProject } from '../move/move-project.ts';
import { adoptProject } from '../store/directory.ts';
import { cellNamed, type Directory, openCellDriver, withDirectory } from './cells.ts';
import { checkReachable } from './measure-cells.ts';

export interface ProjectMoveRequest {
  project: string;
  /** The name of a cell. */
  to: string;
  onProgress?: MoveProjectOptions['onProgress'];
}

/**
 * Moves the project. Resolves when the new cell serves the project and the project's rows in the former cell are deleted.
 * After an interruption, another call continues the move. Throws `CannotStart`.
 */
export function moveProjectTo(config: Config, request: ProjectMoveRequest): Promise<MoveResult> {
  return withDirectory(config, async (directory) => {
    const { projectId, cellId } = await projectNamed(directory, request.project);
    const { cellId: toCell } = await cellNamed(directory.store, request.to);
    const current = await directory.store.moves.findMove({ projectId });
    if (current === undefined && cellId === toCell)
      throw new CannotStart(`the project "${request.project}" lives in the cell "${request.to}" already`);
    await waitForPlacementChecks(directory);
    return moveBetween(directory, { projectId, fromCell: current?.fromCell ?? cellId, toCell }, request.onProgress);
  });
}

/** Moves the project between two cells. All workers must know the cells (`waitForPlacementChecks`). */
export async function moveBetween(
  directory: Directory,
  { projectId, fromCell, toCell }: MoveRoute,
  onProgress: MoveProjectOptions['onProgress'],
): Promise<MoveResult> {
  await checkBothReachable(directory, { fromCell, toCell });
  const mover = moverOf(directory);
  const move = { projectId, fromCell, toCell, mover, startedAtMs: systemClock.wallMs() };
  if (!(await directory.store.moves.startMove(move))) throw new CannotStart('the project does not live in that cell');
  const { projects } = await directory.store.projects.readAccounts();
  return withBothCells(directory, { projectId, fromCell, toCell, mover }, async (options) => {
    const project = projects.find((each) => each.projectId === projectId);
    // If no worker has served the cell since the project was created, the cell does not have the project yet.
    if (project?.cellId === fromCell) await options.source.transaction((tx) => adoptProject(tx, project));
    return moveProject({ ...options, ...(onProgress && { onProgress }) });
  });
}

/** Cancels a move that was interrupted before its switch, and removes the copied rows. Throws `CannotStart`. */
export function cancelMoveOf(config: Config, { project }: Pick<ProjectMoveRequest, 'project'>): Promise<void> {
  return withDirectory(config, async (directory) => {
    const { projectId } = await projectNamed(directory, project);
    const current = await directory.store.moves.findMove({ projectId });
    if (current === undefined) throw new CannotStart(`the project "${project}" is not being moved`);
    await cancelBetween(directory, current);
  });
}

export async function cancelBetween(directory: Directory, { projectId, fromCell, toCell }: MoveRoute): Promise<void> {
  await checkBothReachable(directory, { fromCell, toCell });
  return withBothCells(directory, { projectId, fromCell, toCell, mover: moverOf(directory) }, cancelProjectMove);
}

/** Throws `CannotStart` when a cell cannot be reached: a move would wait for minutes for a database that hangs. */
async function checkBothReachable(
  directory: Directory,
  { fromCell, toCell }: Omit<MoveRoute, 'projectId'>,
): Promise<void> {
  const cells = await directory.store.cells.listCells();
  for (const cell of cells) if ([fromCell, toCell].includes(cell.cellId)) await checkReachable(directory, cell);
}

function moverOf({ randomBytes }: Directory): string {
  return randomBase58(12, randomBytes);
}

async function projectNamed({ store }: Directory, name: string): Promise<{ projectId: ProjectId; cellId: CellId }> {
  const { projects } = await store.projects.readAccounts();
  const found = projects.find((project) => project.name === name);
  if (found) return found;
  throw new CannotStart(`there is no project ${JSON.stringify(name)}; "waypost projects" lists them`);
}

/**
 * Waits until all workers know the cells. Until then, a worker does not check whether its store has the project. Throws
 * `CannotStart` when some workers do not confirm in time.
 */
export async function waitForPlacementChecks({ store, config: { workerTimeoutMs } }: Directory): Promise<void> {
  const behind = await waitForConfirmations(store, systemClock, workerTimeoutMs);
  if (behind.length > 0)
    throw new CannotStart(
      `these workers have not said that they know the cells: ${behind.join(', ')}; try again later`,
    );
}

type MoveRoute = Pick<MoveProjectOptions, 'projectId' | 'fromCell' | 'toCell'>;

async function withBothCells<T>(
  directory: Directory,
  { projectId, fromCell, toCell, mover }: MoveRoute & Pick<MoveProjectOptions, 'mover'>,
  work: (options: MoveProjectOptions) => Promise<T>,
): Promise<T> {
  const cells = await directory.store.cells.listCells();
  const source = openCellDriver(directory, cells, fromCell);
  const target = openCellDriver(directory, cells, toCell);
  const days = new LogPartitions(target);
  const { moves } = directory.store;
  let lease: MoveLease | undefined;
  try {
    lease = await MoveLease.take(moves, systemClock, projectId, mover);
    return await work({
      ...{ projectId, fromCell, toCell, mover, directory: moves, clock: systemClock },
      ...{ source: lease.guard(source), target: lease.guard(target) },
      prepareLogs: (logs) => days.createFor(logs),
    });
  } catch (error) {
    if (error instanceof MoveRefused) throw new CannotStart(error.message, { cause: error });
    throw error;
  } finally {
    await lease?.stopRenewal();
    await Promise.all([source.close(), target.close()]);
  }
}
