/**
 * Moves a project from one cell to another while both are in use.
 *
 * What has piled up is copied first. Then the project pauses: its cell refuses it (store/operations/locking/placement.ts), what has
 * changed meanwhile is copied, both sides are compared, and the directory says that it lives in the other cell. From then
 * on that one serves it, and its rows in the former one are deleted.
 *
 * Each step may be repeated. So a call after a crash continues the move: before the switch, the former cell first serves the
 * project again, and rows that were copied are found to be equal.
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
import { releaseCells, takeCell, takeCells, takenOver } from './mover.ts';
import { removeProject } from './remove.ts';
import { HISTORY, PRESENT, timesOf } from './row-groups.ts';
import { announceWorkers } from './workers.ts';

export interface MoveProjectOptions {
  projectId: ProjectId;
  fromCell: CellId;
  toCell: CellId;
  /** Tells this command from others that would move the project too. */
  mover: string;
  /** Of the first cell. */
  directory: Store['moves'];
  source: Driver;
  target: Driver;
  clock: { wallMs(): Millis; readonly elapsedMs: Millis };
  /** Makes room in the target for logs of these times, where they lie by days. */
  prepareLogs?: (logs: { fromMs: Millis; toMs: Millis }) => Promise<void>;
  /** Told of each step that begins, and of each chunk of rows that is written. */
  onProgress?: (progress: MoveProgress) => void;
  /** Upkeep of the target after each chunk. */
  afterChunk?: () => void;
  limits?: ChunkLimits;
  /** A pause that takes longer is given up: the project is served by its former cell again. Default: 30 s. */
  pauseMaxMs?: Millis;
}

/** Where a move is, and whose. */
export type MoveEnds = Pick<
  MoveProjectOptions,
  'projectId' | 'fromCell' | 'toCell' | 'mover' | 'directory' | 'source' | 'target'
>;

export type MoveStep = 'copying' | 'pausing' | 'copying the rest' | 'switching' | 'deleting' | 'cancelling' | 'moved';

export type MoveProgress = { step: MoveStep } | { table: string; rows: number };

export interface MovedProject {
  /** How long the project was refused; undefined: it was switched by an earlier call. */
  pausedMs?: Millis;
  /** What was found equal on both sides in the pause. */
  tables: CopiedTable[];
}

/** No more passes over the history before the pause: what is left is as much as comes in the time of one pass. */
const PASSES_MAX = 5;
/** A pass that takes no longer finds little to copy. */
const SHORT_MS = 500;
/** Log entries may be written with a time so much earlier; those that are even older are found by comparing all. */
const LATE_MS = 10_000;
const PAUSE_MAX_MS = 30_000;

/**
 * Resolves when the project lives in the new cell, and nothing of it is left in the former one. Throws `MoveRefused` if
 * it cannot be moved; errors of the databases pass through. If it throws before the switch, the project is still in its former cell.
 */
export async function moveProject(options: MoveProjectOptions): Promise<MovedProject> {
  const { directory, projectId, fromCell, toCell, mover, clock } = options;
  const move = await directory.beginMove({ projectId, fromCell, toCell, mover, begunAtMs: clock.wallMs() });
  if (move === undefined) throw new MoveRefused('the project does not live in that cell');
  checkOwn(move, options);
  if (move.phase === 'cancelled')
    throw new MoveRefused('an earlier move of the project was cancelled: that must end first');
  const own = await takeOver(options);
  const moved = move.phase === 'switched' ? { tables: [] } : await copyAndSwitch(own);
  await finish(own);
  return moved;
}

/** The cells for this call alone. */
async function takeOver(options: MoveProjectOptions): Promise<MoveProjectOptions> {
  const { directory, projectId, mover } = options;
  const cells = await takeCells(options, options);
  // Another one may have taken over before, and have done all: nothing of that may be done again.
  if ((await directory.findMove({ projectId }))?.mover !== mover) throw takenOver();
  return { ...options, ...cells };
}

/**
 * Has a project served again whose move has stopped in its pause: by its former cell, or by the new one if the directory says so. The
 * move is left to be gone on with. `mover` must be the move's in the directory; an earlier one writes nothing in the former cell
 * any more, and cannot switch. Throws `MoveRefused` when another one has taken over.
 */
export async function endPause(ends: MoveEnds): Promise<void> {
  const { directory, projectId, fromCell, toCell, mover } = ends;
  await checkDirectory(ends);
  const source = await takeCell(ends.source, fromCell, ends);
  const move = await directory.findMove({ projectId });
  if (move?.mover !== mover) throw takenOver();
  switch (move.phase) {
    case 'switched':
      return handOver({ source, target: await takeCell(ends.target, toCell, ends), projectId });
    case 'cancelled':
      return place(source, projectId, 'here');
    case 'copying':
    case 'paused':
      return resume({ ...ends, source });
  }
}

/**
 * Throws `MoveRefused` unless the move is this one, and the caller's. Another one of the same project may have begun since the caller has
 * read where it goes, the other way round at worst: what is copied there is all that there is.
 */
function checkOwn(move: ProjectMove, { fromCell, toCell, mover }: MoveEnds): void {
  if (move.mover !== mover) throw new MoveRefused('another command moves the project');
  if (move.fromCell !== fromCell || move.toCell !== toCell)
    throw new MoveRefused(`the project is on its way from cell ${move.fromCell} to cell ${move.toCell}`);
}

/** The same of the move as it stands in the directory now. */
async function checkDirectory(ends: MoveEnds): Promise<void> {
  const move = await ends.directory.findMove({ projectId: ends.projectId });
  if (move === undefined) throw new MoveRefused('the project is not being moved');
  checkOwn(move, ends);
}

/** Ends a move that has not switched: removes what was copied. Throws `MoveRefused` when it is too late. */
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
  await place(own.source, projectId, 'here');
  await removeProject(own.target, projectId, options.afterChunk);
  await place(own.target, projectId, 'elsewhere');
  await end(own);
}

async function copyAndSwitch(options: MoveProjectOptions): Promise<MovedProject> {
  const { directory, source, projectId, mover, clock, onProgress = () => {} } = options;
  const { pauseMaxMs = PAUSE_MAX_MS } = options;
  await resume(options);
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
    await place(source, projectId, 'leaving');
    await source.transaction((tx) => awaitBatches(tx, projectId), { lockWaitMs: pauseMaxMs });
    onProgress({ step: 'copying the rest' });
    const tables = await copyRest(aligner, sinceMs);
    await announceWorkers(options);
    onProgress({ step: 'switching' });
    if (!(await directory.switchMove({ projectId, mover })))
      throw new MoveRefused('another command has taken this move over, or cancelled it');
    await handOver(options);
    return { pausedMs: clock.elapsedMs - pausedAtMs, tables };
  } catch (error) {
    await resume(options).catch(() => {}); // the next call does it
    throw error;
  }
}

/** Copies what has piled up, until little is left; answers from when on it may have changed. */
async function copyWhileInUse(aligner: Aligner, { clock }: MoveProjectOptions): Promise<Millis> {
  let sinceMs = 0;
  for (let pass = 1; ; pass += 1) {
    const [begunMs, begunAtMs] = [clock.elapsedMs, clock.wallMs()];
    // Rows that were appended before the last pass are compared in the pause, not in each pass.
    for (const group of HISTORY) await aligner.alignHistory(group, group.isAppended ? sinceMs : 0);
    for (const group of PRESENT) if (group.table.name !== 'messages') await aligner.alignPresent(group);
    sinceMs = begunAtMs - LATE_MS;
    if (clock.elapsedMs - begunMs <= SHORT_MS || pass === PASSES_MAX) return sinceMs;
  }
}

/** Copies what has changed, and finds both sides equal. Nobody writes to either. */
async function copyRest(aligner: Aligner, sinceMs: Millis): Promise<CopiedTable[]> {
  const tables: CopiedTable[] = [];
  for (const group of HISTORY) await aligner.alignHistory(group, sinceMs);
  for (const group of PRESENT) tables.push(await aligner.alignPresent(group));
  for (const group of HISTORY) {
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

/** Lets the former cell serve the project, unless it has been switched. */
async function resume({ directory, source, projectId, mover }: MoveEnds): Promise<void> {
  // Waits for a switch whose answer was lost, and changes nothing then.
  await directory.setMovePhase({ projectId, mover, phase: 'copying' });
  const move = await directory.findMove({ projectId });
  if (move?.phase === 'copying' && move.mover === mover) await place(source, projectId, 'here');
}

/** The target gets the row of the project that keeps everyone from what is copied there. */
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
  const [logs] = HISTORY;
  const times = logs && (await source.read((queries: Queries) => timesOf(queries, logs, projectId)));
  if (times) await makeRoom?.(times);
}

/** After the switch. */
async function finish(options: MoveProjectOptions): Promise<void> {
  const { source, projectId, onProgress = () => {} } = options;
  await handOver(options);
  await place(source, projectId, 'gone');
  onProgress({ step: 'deleting' });
  await removeProject(source, projectId, options.afterChunk);
  await place(source, projectId, 'elsewhere');
  await end(options);
  onProgress({ step: 'moved' });
}

/** The directory last: as long as that knows of the move, it can be called again. */
async function end(options: MoveProjectOptions): Promise<void> {
  const { directory, projectId, mover } = options;
  await releaseCells(options, options);
  await directory.endMove({ projectId, mover });
}

/**
 * Lets the new cell serve the project. First the former one says that it does not: a worker that has not heard of the move
 * yet would read there what is out of date. While that one cannot be reached, nobody reads there.
 */
async function handOver({
  source,
  target,
  projectId,
}: Pick<MoveEnds, 'source' | 'target' | 'projectId'>): Promise<void> {
  await place(source, projectId, 'gone').catch((error: unknown) => {
    if (!(error instanceof StoreUnavailable)) throw error;
  });
  await place(target, projectId, 'here');
}

function place(driver: Driver, projectId: ProjectId, placement: Placement): Promise<void> {
  return driver.transaction((tx) => setPlacement(tx, projectId, placement));
}
