/** What `waypost cells balance` does: plans which projects are to live elsewhere, and moves them one after the other. */
import type { Config } from '../config/table.ts';
import type { CellId, Millis, ProjectId } from '../engine/model.ts';
import { StoreUnavailable } from '../engine/store-errors.ts';
import type { MoveProjectOptions } from '../store/move/project/move-project.ts';
import { CannotStart } from '../system/cannot-start.ts';
import { type PlannedMove, planBalance } from './balance-plan.ts';
import { withDirectory } from './cells.ts';
import { loadedCells, type Measured, measureCells } from './measure-cells.ts';
import { cancelBetween, moveBetween, untilAllGuard } from './move-project.ts';
import { messageOf } from './open-store.ts';

export interface BalancePlan {
  /** Moves that were interrupted: they are finished first. */
  unfinished: { project: string; from: string; to: string; isCancelled: boolean }[];
  moves: { project: string; from: string; to: string; why: PlannedMove['why']; messagesPerMinute: number }[];
  cells: {
    name: string;
    isDraining: boolean;
    /** Its part of the load of all cells, from 0 to 1; absent: it cannot be reached, and is left out. */
    share?: number;
  }[];
}

export interface Balanced extends BalancePlan {
  /** In the order in which they ended. */
  done: { project: string; pausedMs?: Millis }[];
  failed: { project: string; reason: string }[];
}

export interface BalanceOptions {
  /** Told when the plan is made. */
  onPlan: (plan: BalancePlan) => void;
  /** Told when a project is about to be moved. */
  onMove: (move: { project: string; from: string; to: string }) => void;
  onProgress: NonNullable<MoveProjectOptions['onProgress']>;
}

/** Changes nothing. Throws `CannotStart`. */
export function planCells(config: Config): Promise<BalancePlan> {
  return withDirectory(config, async (directory) => planOf(await measureCells(directory)).told);
}

/**
 * Finishes moves that were interrupted, makes the plan, and carries it out. What cannot be moved is told of, and the others go
 * on. After an interruption the same call does what is left. Throws `CannotStart`.
 */
export function balanceCells(config: Config, { onPlan, onMove, onProgress }: BalanceOptions): Promise<Balanced> {
  return withDirectory(config, async (directory) => {
    const done: Balanced['done'] = [];
    const failed: Balanced['failed'] = [];
    const carryOut = async (project: string, work: () => Promise<{ pausedMs?: Millis } | undefined>) => {
      try {
        const { pausedMs } = (await work()) ?? {};
        done.push({ project, ...(pausedMs !== undefined && { pausedMs }) });
      } catch (error) {
        if (!(error instanceof CannotStart || error instanceof StoreUnavailable)) throw error;
        failed.push({ project, reason: messageOf(error) });
      }
    };
    const before = await measureCells(directory);
    await untilAllGuard(directory);
    const { unfinished } = planOf(before).told;
    for (const [index, move] of before.moves.entries()) {
      const told = unfinished[index];
      if (told === undefined) continue;
      onMove(told);
      await carryOut(told.project, async () =>
        told.isCancelled ? void (await cancelBetween(directory, move)) : moveBetween(directory, move, onProgress),
      );
    }
    const { told, planned } = planOf(before.moves.length > 0 ? await measureCells(directory) : before);
    onPlan({ ...told, unfinished });
    for (const [index, move] of planned.entries()) {
      const { project, from, to } = told.moves[index] ?? { project: '', from: '', to: '' };
      onMove({ project, from, to });
      await carryOut(project, () => moveBetween(directory, move, onProgress));
    }
    return { ...told, unfinished, done, failed };
  });
}

/** The plan with numbers, and as it is told. A project that is on its way is left out. */
function planOf(measured: Measured): { planned: PlannedMove[]; told: BalancePlan } {
  const { cells, moves, names } = measured;
  const nameOf = (projectId: ProjectId) => names.get(projectId) ?? String(projectId);
  const cellNamed = (cellId: CellId) => cells.find(({ cell }) => cell.cellId === cellId)?.cell.name ?? String(cellId);
  const loads = new Map(
    cells.flatMap(({ measured: found }) => found?.loads ?? []).map((load) => [load.projectId, load]),
  );
  const isMoving = new Set(moves.map(({ projectId }) => projectId));
  const planned = planBalance(loadedCells(measured)).filter(({ projectId }) => !isMoving.has(projectId));
  return {
    planned,
    told: {
      unfinished: moves.map(({ projectId, fromCell, toCell, phase }) => ({
        ...{ project: nameOf(projectId), from: cellNamed(fromCell), to: cellNamed(toCell) },
        isCancelled: phase === 'cancelled',
      })),
      moves: planned.map(({ projectId, fromCell, toCell, why }) => ({
        ...{ project: nameOf(projectId), from: cellNamed(fromCell), to: cellNamed(toCell), why },
        messagesPerMinute: loads.get(projectId)?.perMinute ?? 0,
      })),
      cells: cells.map(({ cell: { name, isDraining }, measured: found }) => ({
        ...{ name, isDraining },
        ...(found && { share: found.share }),
      })),
    },
  };
}
