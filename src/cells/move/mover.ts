/**
 * Which command moves a project? The directory says it, and another one takes over from one that is silent (move-lease.ts). But
 * who is silent may only be slow, and a statement that it has sent may be carried out when it is long gone. So a mover writes its name
 * down in both cells as well, and each transaction of a move first sees whether its own name still stands there, and keeps that so until
 * its end.
 */

import type { ProjectMove } from '../../engine/accounts/store.ts';
import { type CellId, FIRST_CELL } from '../../engine/model.ts';
import type { Driver, Transaction } from '../../store/driver.ts';
import { MoveRefused } from '../../store/move/progress.ts';

/** What names a move, and who carries it out. */
export type OwnMove = Pick<ProjectMove, 'projectId' | 'fromCell' | 'toCell' | 'mover'>;

interface MoveDrivers {
  source: Driver;
  target: Driver;
}

/**
 * Answers the cells for this mover alone: their transactions throw `MoveRefused` once another one has taken over. No transaction of an
 * earlier mover is under way then, and none can follow. In the directory its name stands already.
 */
export async function takeCells(cells: MoveDrivers, move: OwnMove): Promise<MoveDrivers> {
  const { fromCell, toCell } = move;
  return { source: await takeCell(cells.source, fromCell, move), target: await takeCell(cells.target, toCell, move) };
}

/** The same for one of the two. */
export async function takeCell(cell: Driver, cellId: CellId, move: OwnMove): Promise<Driver> {
  const { projectId, fromCell, toCell, mover } = move;
  if (cellId !== FIRST_CELL) {
    await cell.transaction(async (tx) => {
      await tx.run(
        `insert into project_moves (project_id, from_cell, to_cell, phase, started_at_ms, mover, seen_at_ms)
         values (?, ?, ?, 'copying', 0, ?, 0) on conflict (project_id) do update set mover = excluded.mover`,
        [projectId, fromCell, toCell, mover],
      );
    });
  }
  return guardedBy(cell, move);
}

/** The cells know of no mover any more. The directory forgets the move itself. */
export async function releaseCells(cells: MoveDrivers, move: OwnMove): Promise<void> {
  for (const cell of besideDirectory(cells, move)) {
    await cell.transaction(async (tx) => {
      await tx.run('delete from project_moves where project_id = ? and mover = ?', [move.projectId, move.mover]);
    });
  }
}

function besideDirectory({ source, target }: MoveDrivers, { fromCell, toCell }: OwnMove): Driver[] {
  return [...(fromCell === FIRST_CELL ? [] : [source]), ...(toCell === FIRST_CELL ? [] : [target])];
}

function guardedBy(cell: Driver, move: OwnMove): Driver {
  return {
    dialect: cell.dialect,
    read: (work) => cell.read(work),
    transaction: (work, options) =>
      cell.transaction(async (tx) => {
        await check(tx, move);
        return work(tx);
      }, options),
    close: () => cell.close(),
  };
}

async function check(tx: Transaction, { projectId, mover }: OwnMove): Promise<void> {
  const own = await tx.query('select mover from project_moves where project_id = ? and mover = ? for share', [
    projectId,
    mover,
  ]);
  if (own.length === 0) throw takenOver();
}

export function takenOver(): MoveRefused {
  return new MoveRefused('another command moves the project by now');
}
