/**
 * Guards the two cells of a move against an earlier mover. The directory names the command that moves a project, and
 * another command takes over when the first command is silent (move-lease.ts). But a silent command may only be slow, and
 * a statement that it has sent may be executed much later. So each mover also writes its name into both cells. Each
 * transaction of a move first checks that its cell still has the mover's name, and locks the row with this name until the
 * transaction ends.
 */

import type { ProjectMove } from '../../engine/accounts/store.ts';
import { type CellId, FIRST_CELL } from '../../engine/model.ts';
import type { Driver, Transaction } from '../../store/driver.ts';
import { MoveRefused } from '../../store/move/progress.ts';

/** Identifies a move and the command that carries out the move. */
export type MoveRef = Pick<ProjectMove, 'projectId' | 'fromCell' | 'toCell' | 'mover'>;

interface CellDrivers {
  source: Driver;
  target: Driver;
}

/**
 * Makes this mover the only one in both cells. The transactions of the returned drivers throw `MoveRefused` once another
 * mover has taken over. When the promise resolves, no transaction of an earlier mover is running, and no such transaction
 * can start. The directory must already have the name of this mover.
 */
export async function takeOverCells(cells: CellDrivers, move: MoveRef): Promise<CellDrivers> {
  const { fromCell, toCell } = move;
  return {
    source: await takeOverCell(cells.source, fromCell, move),
    target: await takeOverCell(cells.target, toCell, move),
  };
}

/** Like `takeOverCells`, for one cell. */
export async function takeOverCell(cell: Driver, cellId: CellId, move: MoveRef): Promise<Driver> {
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
  return guardedDriver(cell, move);
}

/** Deletes the mover's name from both cells. In the directory, `endMove` deletes the move itself. */
export async function releaseCells(cells: CellDrivers, move: MoveRef): Promise<void> {
  for (const cell of cellsWithoutDirectory(cells, move)) {
    await cell.transaction(async (tx) => {
      await tx.run('delete from project_moves where project_id = ? and mover = ?', [move.projectId, move.mover]);
    });
  }
}

function cellsWithoutDirectory({ source, target }: CellDrivers, { fromCell, toCell }: MoveRef): Driver[] {
  return [...(fromCell === FIRST_CELL ? [] : [source]), ...(toCell === FIRST_CELL ? [] : [target])];
}

function guardedDriver(cell: Driver, move: MoveRef): Driver {
  return {
    dialect: cell.dialect,
    read: (work) => cell.read(work),
    transaction: (work, options) =>
      cell.transaction(async (tx) => {
        await checkMover(tx, move);
        return work(tx);
      }, options),
    close: () => cell.close(),
  };
}

async function checkMover(tx: Transaction, { projectId, mover }: MoveRef): Promise<void> {
  const own = await tx.query('select mover from project_moves where project_id = ? and mover = ? for share', [
    projectId,
    mover,
  ]);
  if (own.length === 0) throw takenOverError();
}

export function takenOverError(): MoveRefused {
  return new MoveRefused('another command has taken over the move of the project');
}
