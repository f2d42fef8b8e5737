/** Creates the engine of one simulated worker over several cells, like a server. */

import { type Sealer, StoredAccounts } from '../../../src/accounts/accounts.ts';
import { openCells } from '../../../src/cells/serve/open.ts';
import { seal } from '../../../src/config/sealing.ts';
import type { Engine } from '../../../src/engine/commands.ts';
import type { EngineDeps, Recovery } from '../../../src/engine/deps.ts';
import type { CellId } from '../../../src/engine/model.ts';
import type { Machine } from '../../../src/engine/ports.ts';
import type { Driver } from '../../../src/store/driver.ts';
import type { Store } from '../../../src/store/store.ts';

/** Uses no random bytes, since sealed values are never sent. */
export const SEALER: Sealer = { encryptionKey: new Uint8Array(32), randomBytes: (count) => new Uint8Array(count) };

/** The address of a cell in the directory. */
export function addressOf(cellId: CellId): string {
  return seal(`cell ${cellId}`, SEALER.encryptionKey, SEALER.randomBytes);
}

export interface CellsEngineDeps extends EngineDeps {
  recovery: Omit<Extract<Recovery, { kind: 'heartbeat' }>, 'accounts' | 'isActiveElsewhere'>;
  machine: Machine;
}

interface CellAccess {
  /** Opens a cell other than the first. Throws `StoreUnavailable`. */
  storeOf: (cellId: CellId) => Store;
  driverOf: (cellId: CellId) => Driver;
  /** Whether workers end the pauses of interrupted moves. */
  endsPauses: boolean;
}

export async function openEngineOverCells(
  { recovery, machine, ...deps }: CellsEngineDeps,
  { storeOf, driverOf, endsPauses }: CellAccess,
): Promise<Engine> {
  const accounts = await StoredAccounts.open(deps.store, SEALER, deps.clock, { isShared: true });
  return openCells({
    first: { ...deps, recovery: { ...recovery, accounts } },
    accounts,
    machine,
    sealer: SEALER,
    openCell: async (url) => storeOf(Number(url.split(' ')[1])),
    ...(endsPauses && { openDriver: (cellId) => keptOpen(driverOf(cellId)) }),
  });
}

/** A driver whose `close` does nothing, because the process continues to use it. */
function keptOpen(driver: Driver): Driver {
  return {
    dialect: driver.dialect,
    transaction: (work, options) => driver.transaction(work, options),
    read: (work) => driver.read(work),
    close: async () => {},
  };
}
