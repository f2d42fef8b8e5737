/**
 * Moves a project from one cell to another while both are in use.
 *
 * Most rows are copied while the project is in use. Then the project is paused: the former cell rejects the project's
 * commands (store/operations/locking/placement.ts), the rows that have changed are copied, both sides are compared, and
 * the directory is switched to the new cell. From then on the new cell serves the project, and the project's rows in the
 * former cell are deleted.
 *
 * Each step can be repeated, so a call of `moveProject` after a crash continues the move. Before the switch, the call
 * first lets the former cell serve the project again; rows that were already copied are not copied again.
 */

import type { ProjectMove } from '../../engine/accounts/store.ts';
import type { CellId, Millis, ProjectId } from '../../engine/model.ts';
import { StoreUnavailable } from '../../engine/store-errors.ts';
import type { Driver, Queries } from '../../store/driver.ts';
import type { ChunkLimits } from '../../store/move/chunks.ts';
import type { CopiedTable } from '../../store/move/copy.ts';
import { MoveRefused } from '../../store/move/progress.ts';
import {
  awaitBatches,
  PLACEMENT,
  type Placement,
  placementOf,
  setPlacement,
} from '../../store/operations/locking/placement.ts';
import type { Store } from '../../store/store.ts';
import { Aligner } from './align.ts';
import { announceWorkers } from './announce-workers.ts';
import { releaseCells, takenOverError, takeOverCell, takeOverCells } from './mover-check.ts';
import { removeProject } from './remove.ts';
import { CURRENT_GROUPS, HISTORY_GROUPS, timesOf } from './row-groups.ts';

export interface MoveProjectOptions {
  projectId: ProjectId;
  fromCell: CellId;
  toCell: CellId;
  /** Identifies this command among others that may move the project. */
  mover: string;
  /** The moves in the first cell. */
  directory: Store['moves'];
  source: Driver;
  target: Driver;
  clock: { wallMs(): Millis; readonly elapsedMs: Millis };
  /** Creates the target's log partitions for these times, if its logs are partitioned by day. */
  prepareLogs?: (logs: { fromMs: Millis; toMs: Millis }) => Promise<void>;
  /** Called with each step that starts, and with each chunk of rows that is written. */
  onProgress?: (progress: MoveProgress) => void;
  /** Called after each chunk, for the upkeep of the database. */
  afterChunk?: () => void;
  limits?: ChunkLimits;
  /** The maximum of the pause. A longer pause is aborted, and the former cell serves the project again. Default: 30 s. */
  pauseMaxMs?: Millis;
}

/** A move with its stores and its mover. */
export type MoveContext = Pick<
  MoveProjectOptions,
  'projectId' | 'fromCell' | 'toCell' | 'mover' | 'directory' | 'source' | 'target'
>;

export type MoveStep = 'copying' | 'pausing' | 'copying the rest' | 'switching' | 'deleting' | 'cancelling' | 'moved';

export type MoveProgress = { step: MoveStep } | { table: string; rows: number };

export interface MoveResult {
  /** How long the project was paused. Undefined if an earlier call has switched the directory. */
  pausedMs?: Millis;
  /** The tables that were compared in the pause, and were equal on both sides. */
  tables: CopiedTable[];
}

/**
 * The maximum of passes over the history before the pause. Each pass leaves only the rows that change during the pass.
 */
const PASSES_MAX = 5;
/** After a pass that was no longer than this, little is left to copy. */
const SHORT_PASS_MS = 500;
/**
 * A log entry may be written this long after its own time. The final comparison of all rows finds entries that were
 * written even later.
 */
const LATE_LOG_MS = 10_000;
const PAUSE_MAX_MS = 30_000;

/**
 * Moves the project. Resolves when the new cell serves the project and the project's rows in the former cell are deleted.
 * Throws `MoveRefused` if the project cannot be moved; errors of the databases pass through. After an error before the
 * switch, the project is still in the former cell.
 */
export async function moveProject(options: MoveProjectOptions): Promise<MoveResult> {
  const { directory, projectId, fromCell, toCell, mover, clock } = options;
  const move = await directory.startMove({ projectId, fromCell, toCell, mover, startedAtMs: clock.wallMs() });
  if (move === undefined) throw new MoveRefused('the project does not live in that cell');
  checkMove(move, options);
  if (move.phase === 'cancelled')
    throw new MoveRefused('an earlier move of the project was cancelled: that must end first');
  const own = await takeOver(options);
  const moved = move.phase === 'switched' ? { tables: [] } : await copyAndSwitch(own);
  await finish(own);
  return moved;
}

/** Returns the options with guarded drivers, so that only this command can write to both cells (`takeOverCells`). */
async function takeOver(options: MoveProjectOptions): Promise<MoveProjectOptions> {
  const { directory, projectId, mover } = options;
  const cells = await takeOverCells(options, options);
  // Another command may have taken over earlier and finished the move: in this case, no step may be repeated.
  if ((await directory.findMove({ projectId }))?.mover !== mover) throw takenOverError();
  return { ...options, ...cells };
}

/**
 * Resumes a project that an interrupted move has left paused: in its former cell, or in its new cell if the directory was
 * switched. A later call of `moveProject` can continue the move. `mover` must be the mover in the directory; an earlier
 * mover can then neither write in the former cell nor switch. Throws `MoveRefused` when another mover has taken over.
 */
export async function endPause(context: MoveContext): Promise<void> {
  const { directory, projectId, fromCell, toCell, mover } = context;
  await checkDirectory(context);
  const source = await takeOverCell(context.source, fromCell, context);
  const move = await directory.findMove({ projectId });
  if (move?.mover !== mover) throw takenOverError();
  switch (move.phase) {
    case 'switched':
      return serveInTarget({ source, target: await takeOverCell(context.target, toCell, context), projectId });
    case 'cancelled':
      return savePlacement(source, projectId, 'here');
    case 'copying':
    case 'paused':
      return serveInSource({ ...context, source });
  }
}

/**
 * Throws `MoveRefused` unless `move` has the caller's cells and mover. After the caller has read the cells, another move
 * of the project may have started, at worst in the opposite direction: the supposed copies would then be the only rows of
 * the project.
 */
function checkMove(move: ProjectMove, { fromCell, toCell, mover }: MoveContext): void {
  if (move.mover !== mover) throw new MoveRefused('another command moves the project');
  if (move.fromCell !== fromCell || move.toCell !== toCell)
    throw new MoveRefused(`the project is on its way from cell ${move.fromCell} to cell ${move.toCell}`);
}

/** Like `checkMove`, with the current move in the directory. */
async function checkDirectory(context: MoveContext): Promise<void> {
  const move = await context.directory.findMove({ projectId: context.projectId });
  if (move === undefined) throw new MoveRefused('the project is not being moved');
  checkMove(move, context);
}

/** Cancels a move before its switch, and removes the copied rows. Throws `MoveRefused` after the switch. */
export async function cancelProjectMove(options: MoveProjectOptions): Promise<void> {
  const { directory, projectId, mover, onProgress = () => {} } = options;
  onProgress({ step: 'cancelling' });
  await checkDirectory(options);
  await directory.setMovePhase({ projectId, mover, phase: 'cancelled' });
  const move = await directory.findMove({ projectId });
  if (move?.phase === 'switched') throw new MoveRefused('the project lives in the new cell already: move it back');
  if (move === undefined) throw new MoveRefused('the project is not being moved');
  if (move.mover !== mover) throw new MoveRefused('another command moves the project');
  const own = await takeOver(options);
  await savePlacement(own.source, projectId, 'here');
  await removeProject(own.target, projectId, options.afterChunk);
  await savePlacement(own.target, projectId, 'elsewhere');
  await deleteMove(own);
}

async function copyAndSwitch(options: MoveProjectOptions): Promise<MoveResult> {
  const { directory, source, projectId, mover, clock, onProgress = () => {} } = options;
  const { pauseMaxMs = PAUSE_MAX_MS } = options;
  await serveInSource(options);
  await prepareTarget(options);
  onProgress({ step: 'copying' });
  let pausedAtMs: Millis | undefined;
  const aligner = new Aligner(options, (chunk) => {
    onProgress(chunk);
    options.afterChunk?.();
    if (pausedAtMs !== undefined && clock.elapsedMs - pausedAtMs > pauseMaxMs)
      throw new MoveRefused(`too much has changed to copy it in a pause of ${pauseMaxMs} ms: try again later`);
  });
  const sinceMs = await copyWhileInUse(aligner, options);
  try {
    onProgress({ step: 'pausing' });
    await directory.setMovePhase({ projectId, mover, phase: 'paused' });
    pausedAtMs = clock.elapsedMs;
    await savePlacement(source, projectId, 'leaving');
    await source.transaction((tx) => awaitBatches(tx, projectId), { lockWaitMs: pauseMaxMs });
    onProgress({ step: 'copying the rest' });
    const tables = await copyRest(aligner, sinceMs);
    await announceWorkers(options);
    onProgress({ step: 'switching' });
    if (!(await directory.switchMove({ projectId, mover })))
      throw new MoveRefused('another command has taken this move over, or cancelled it');
    await serveInTarget(options);
    return { pausedMs: clock.elapsedMs - pausedAtMs, tables };
  } catch (error) {
    await serveInSource(options).catch(() => {}); // the next call resumes the project
    throw error;
  }
}

/**
 * Copies rows until little is left. Returns the time from which on rows of the history may have changed since the last
 * pass.
 */
async function copyWhileInUse(aligner: Aligner, { clock }: MoveProjectOptions): Promise<Millis> {
  let sinceMs = 0;
  for (let pass = 1; ; pass += 1) {
    const [startedMs, startedAtMs] = [clock.elapsedMs, clock.wallMs()];
    // Rows that were appended before the last pass are compared in the pause, not in each pass.
    for (const group of HISTORY_GROUPS) await aligner.alignHistory(group, group.isAppended ? sinceMs : 0);
    for (const group of CURRENT_GROUPS) if (group.table.name !== 'messages') await aligner.alignCurrent(group);
    sinceMs = startedAtMs - LATE_LOG_MS;
    if (clock.elapsedMs - startedMs <= SHORT_PASS_MS || pass === PASSES_MAX) return sinceMs;
  }
}

/** Copies the rows that have changed, and compares both sides, on which nothing is written now. */
async function copyRest(aligner: Aligner, sinceMs: Millis): Promise<CopiedTable[]> {
  const tables: CopiedTable[] = [];
  for (const group of HISTORY_GROUPS) await aligner.alignHistory(group, sinceMs);
  for (const group of CURRENT_GROUPS) tables.push(await aligner.alignCurrent(group));
  for (const group of HISTORY_GROUPS) {
    let found = await aligner.compareHistory(group);
    if (!found.isEqual) {
      await aligner.alignHistory(group);
      found = await aligner.compareHistory(group);
    }
    if (!found.isEqual) throw new MoveRefused(`${found.table} differs after it was copied; run the command again`);
    tables.push({ table: found.table, rows: found.rows, checksum: found.checksum });
  }
  return tables;
}

/** Lets the former cell serve the project again, unless the directory was switched. */
async function serveInSource({ directory, source, projectId, mover }: MoveContext): Promise<void> {
  // If a switch is still running because its response was lost, this change waits for the switch, and then has no effect.
  await directory.setMovePhase({ projectId, mover, phase: 'copying' });
  const move = await directory.findMove({ projectId });
  if (move?.phase === 'copying' && move.mover === mover) await savePlacement(source, projectId, 'here');
}

/** Adds the project to the target as arriving: until the switch, no command can use the copied rows. */
async function prepareTarget(options: MoveProjectOptions): Promise<void> {
  const { source, target, projectId, toCell, prepareLogs: makeRoom } = options;
  const [project] = await source.read((queries) =>
    queries.query<{ name: string; created_at_ms: number }>('select name, created_at_ms from projects where id = ?', [
      projectId,
    ]),
  );
  if (!project) throw new MoveRefused('the cell does not know the project');
  await target.transaction(async (tx) => {
    const placement = await placementOf(tx, projectId);
    if (placement === 'arriving') return;
    if (placement === undefined) {
      await tx.insertMany(
        'projects',
        ['id', 'name', 'signing_current', 'signing_next', 'created_at_ms', 'cell', 'placement'],
        [[projectId, project.name, '', '', project.created_at_ms, toCell, PLACEMENT.arriving]],
      );
    } else if (placement === 'elsewhere') await setPlacement(tx, projectId, 'arriving');
    else throw new MoveRefused(`the project is ${placement} in the cell to which it is moved`);
  });
  const [logs] = HISTORY_GROUPS;
  const times = logs && (await source.read((queries: Queries) => timesOf(queries, logs, projectId)));
  if (times) await makeRoom?.(times);
}

/** Completes a move after its switch: deletes the rows in the former cell. */
async function finish(options: MoveProjectOptions): Promise<void> {
  const { source, projectId, onProgress = () => {} } = options;
  await serveInTarget(options);
  await savePlacement(source, projectId, 'gone');
  onProgress({ step: 'deleting' });
  await removeProject(source, projectId, options.afterChunk);
  await savePlacement(source, projectId, 'elsewhere');
  await deleteMove(options);
  onProgress({ step: 'moved' });
}

/**
 * Deletes the move from the cells, and last from the directory: while the directory has the move, a call can continue it.
 */
async function deleteMove(options: MoveProjectOptions): Promise<void> {
  const { directory, projectId, mover } = options;
  await releaseCells(options, options);
  await directory.endMove({ projectId, mover });
}

/**
 * Lets the new cell serve the project. First makes the former cell reject the project: a worker that does not know the
 * switch yet would read outdated rows in the former cell. If the former cell cannot be reached, no worker can read these
 * rows either.
 */
async function serveInTarget({
  source,
  target,
  projectId,
}: Pick<MoveContext, 'source' | 'target' | 'projectId'>): Promise<void> {
  await savePlacement(source, projectId, 'gone').catch((error: unknown) => {
    if (!(error instanceof StoreUnavailable)) throw error;
  });
  await savePlacement(target, projectId, 'here');
}

function savePlacement(driver: Driver, projectId: ProjectId, placement: Placement): Promise<void> {
  return driver.transaction((tx) => setPlacement(tx, projectId, placement));
}
