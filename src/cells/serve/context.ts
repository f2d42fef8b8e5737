/** The dependencies of a worker that serves the cells of an installation, shared by the files of this folder. */
import type { Sealer, StoredAccounts } from '../../accounts/accounts.ts';
import type { OpenCell, WatchCell } from '../../admin/open-store.ts';
import type { EngineDeps, Recovery } from '../../engine/deps.ts';
import type { CellId } from '../../engine/model.ts';
import type { Machine } from '../../engine/ports.ts';
import type { Driver } from '../../store/driver.ts';

export interface CellsContext {
  /**
   * The dependencies of the first cell's engine, with an open store. The engines of all cells share the log and the
   * worker.
   */
  first: EngineDeps & { recovery: Extract<Recovery, { kind: 'heartbeat' }> };
  accounts: StoredAccounts;
  sealer: Sealer;
  /** The machine's clock, from which each database gets a clock of its own. */
  machine: Machine;
  openCell: OpenCell;
  /** Absent: an open cell is never closed for lack of work. */
  watchCell?: WatchCell | undefined;
  /** Opens a short connection to a cell. Absent: projects that an interrupted move has left paused are not resumed. */
  openDriver?: ((cellId: CellId) => Driver) | undefined;
  /** How many cells a worker serves before they are divided among workers. Default: `CELLS_PER_WORKER`. */
  cellsPerWorker?: number | undefined;
}
