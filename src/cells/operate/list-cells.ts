/** Collects the output of `waypost cells`: each cell with its load and its moves. */

import { displayNameOf } from '../../admin/open-store.ts';
import type { Config } from '../../config/table.ts';
import type { MovePhase } from '../../engine/accounts/store.ts';
import type { Totals } from '../../engine/lists/unfinished.ts';
import type { Millis } from '../../engine/model.ts';
import { systemClock } from '../../system/system.ts';
import { isStuck } from '../move/move-lease.ts';
import { cellUrl, withDirectory } from './cells.ts';
import { measureCells } from './measure-cells.ts';

export interface CellEntry {
  name: string;
  /** Database, schema and server, without a password. */
  place: string;
  addedAtMs?: Millis;
  isDraining: boolean;
  /** The number of projects in the cell. */
  projects: number;
  /** Why the cell cannot be reached now. */
  awayReason?: string;
  /** Absent if the cell cannot be reached now. */
  load?: {
    totals: Totals;
    messagesPerMinute: number;
    /** The cell's share of the load of all cells, from 0 to 1. */
    share: number;
  };
  /** The moves of the cell's projects to other cells. */
  moves: MoveEntry[];
}

export interface MoveEntry {
  project: string;
  to: string;
  phase: MovePhase;
  startedAtMs: Millis;
  /** Whether the command that moves the project has ended before the move was done. */
  isStuck: boolean;
}

/** Throws `CannotStart`. */
export function listCells(config: Config): Promise<CellEntry[]> {
  return withDirectory(config, async (directory) => {
    const { cells, moves, projectName, cellName } = await measureCells(directory);
    const nowMs = systemClock.wallMs();
    return cells.map(({ cell, projects, measured, reason }) => ({
      name: cell.name,
      place: displayNameOf(cellUrl(directory, cell)),
      ...(cell.addedAtMs !== undefined && { addedAtMs: cell.addedAtMs }),
      isDraining: cell.isDraining,
      projects: projects.length,
      ...(reason !== undefined && { awayReason: reason }),
      ...(measured && {
        load: {
          totals: measured.totals,
          messagesPerMinute: measured.loads.reduce((sum, { perMinute }) => sum + perMinute, 0),
          share: measured.share,
        },
      }),
      moves: moves
        .filter(({ fromCell }) => fromCell === cell.cellId)
        .map((move) => ({
          project: projectName(move.projectId),
          to: cellName(move.toCell),
          ...{ phase: move.phase, startedAtMs: move.startedAtMs, isStuck: isStuck(move, nowMs) },
        })),
    }));
  });
}
