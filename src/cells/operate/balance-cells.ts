/** Implements `waypost cells balance`: plans which projects move to other cells, and moves them one after another. */

import { messageOf } from '../../admin/open-store.ts';
import type { Config } from '../../config/table.ts';
import type { Millis } from '../../engine/model.ts';
import { StoreUnavailable } from '../../engine/store-errors.ts';
import { CannotStart } from '../../system/cannot-start.ts';
import type { MoveProjectOptions } from '../move/move-project.ts';
import { type PlannedMove, planBalance } from './balance-plan.ts';
import { withDirectory } from './cells.ts';
import { loadedCells, type MeasuredCells, measureCells } from './measure-cells.ts';
import { cancelBetween, moveBetween, waitForPlacementChecks } from './move-command.ts';

interface NamedMove {
  project: string;
  from: string;
  to: string;
}

export interface BalancePlan {
  /** Interrupted moves, which are finished first. */
  unfinished: (NamedMove & { isCancelled: boolean })[];
  moves: (NamedMove & { why: PlannedMove['why']; messagesPerMinute: number })[];
  cells: {
    name: string;
    isDraining: boolean;
    /**
     * The cell's share of the load of all cells, from 0 to 1. Absent if the cell is unreachable: such a cell is not in
     * the plan.
     */
    share?: number;
  }[];
}

export interface BalanceResult extends BalancePlan {
  /** The finished moves, in the order in which they ended. */
  done: { project: string; pausedMs?: Millis }[];
  failed: { project: string; reason: string }[];
}

export interface BalanceOptions {
  /** Called with the plan. */
  onPlan: (plan: BalancePlan) => void;
  /** Called before each move. */
  onMove: (move: NamedMove) => void;
  onProgress: NonNullable<MoveProjectOptions['onProgress']>;
}

/** Makes the plan, and changes nothing. Throws `CannotStart`. */
export function planCells(config: Config): Promise<BalancePlan> {
  return withDirectory(config, async (directory) => {
    const measured = await measureCells(directory);
    return describePlan(measured, planOf(measured));
  });
}

/**
 * Finishes interrupted moves, makes the plan, and carries out the plan. A project that cannot be moved is reported, and
 * the other projects are still moved. After an interruption, another call continues the moves. Throws `CannotStart`.
 */
export function balanceCells(config: Config, { onPlan, onMove, onProgress }: BalanceOptions): Promise<BalanceResult> {
  return withDirectory(config, async (directory) => {
    const done: BalanceResult['done'] = [];
    const failed: BalanceResult['failed'] = [];
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
    await waitForPlacementChecks(directory);
    const { unfinished } = describePlan(before, []);
    for (const move of before.moves) {
      const named = nameMove(before, move);
      onMove(named);
      await carryOut(named.project, async () =>
        move.phase === 'cancelled'
          ? void (await cancelBetween(directory, move))
          : moveBetween(directory, move, onProgress),
      );
    }
    const measured = before.moves.length > 0 ? await measureCells(directory) : before;
    const planned = planOf(measured);
    const plan = { ...describePlan(measured, planned), unfinished };
    onPlan(plan);
    for (const move of planned) {
      const named = nameMove(measured, move);
      onMove(named);
      await carryOut(named.project, () => moveBetween(directory, move, onProgress));
    }
    return { ...plan, done, failed };
  });
}

/** The planned moves, except the moves of projects that are already being moved. */
function planOf(measured: MeasuredCells): PlannedMove[] {
  const isMoving = new Set(measured.moves.map(({ projectId }) => projectId));
  return planBalance(loadedCells(measured)).filter(({ projectId }) => !isMoving.has(projectId));
}

function describePlan(measured: MeasuredCells, planned: readonly PlannedMove[]): BalancePlan {
  const { cells, moves } = measured;
  const loads = new Map(
    cells.flatMap(({ measured: found }) => found?.loads ?? []).map((load) => [load.projectId, load]),
  );
  return {
    unfinished: moves.map((move) => ({ ...nameMove(measured, move), isCancelled: move.phase === 'cancelled' })),
    moves: planned.map((move) => ({
      ...{ ...nameMove(measured, move), why: move.why },
      messagesPerMinute: loads.get(move.projectId)?.perMinute ?? 0,
    })),
    cells: cells.map(({ cell: { name, isDraining }, measured: found }) => ({
      ...{ name, isDraining },
      ...(found && { share: found.share }),
    })),
  };
}

function nameMove(
  { projectName, cellName }: MeasuredCells,
  { projectId, fromCell, toCell }: Pick<PlannedMove, 'projectId' | 'fromCell' | 'toCell'>,
): NamedMove {
  return { project: projectName(projectId), from: cellName(fromCell), to: cellName(toCell) };
}
