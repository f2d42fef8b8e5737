/** The dependencies of a worker that serves the cells of an installation, shared by the files of this folder. */
import type { Sealer, StoredAccounts } from '../../accounts/accounts.ts';
import type { OpenCell, WatchCell } from '../../admin/open-store.ts';
import type { EngineDeps, Recovery } from '../../engine/deps.ts';
import type { CellId } from '../../engine/model.ts';
import type { Machine } from '../../engine/ports.ts';
import type { Driver } from '../../store/driver.ts';

export interface CellsContext {
  /** The engine of the first cell, whose store is open already. Its clock, log and worker are those of all cells. */
  first: EngineDeps & { recovery: Extract<Recovery, { kind: 'heartbeat' }> };
  accounts: StoredAccounts;
  sealer: Sealer;
  /** The machine's clock: each database gets a clock of its own from it. */
  machine: Machine;
  openCell: OpenCell;
  /** Absent: a cell that is open stays open. */
  watchCell?: WatchCell | undefined;
  /** Opens a short connection to a cell. Absent: projects whose move has stopped in its pause are not resumed. */
  openDriver?: ((cellId: CellId) => Driver) | undefined;
  /** How many cells a worker serves before they are divided among workers. Default: `CELLS_PER_WORKER`. */
  cellsPerWorker?: number | undefined;
}
