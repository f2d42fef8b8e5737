/** The cells of an installation on PostgreSQL behind one engine. */
import type { StoredAccounts } from '../../accounts/accounts.ts';
import type { Engine } from '../../engine/commands.ts';
import { createEngine, type EngineDeps, type Recovery } from '../../engine/create.ts';
import type { Machine } from '../../engine/ports.ts';
import type { Store } from '../../engine/stores.ts';
import { DatabaseClock } from '../../engine/workers/database-clock.ts';
import { logWith } from '../../telemetry/log-with.ts';
import { Cells, type CellsOptions } from './cells.ts';
import { engineOver } from './router.ts';

type OverHeartbeats = Extract<Recovery, { kind: 'heartbeat' }>;

/** What the engine of the first cell needs, and what opens the others. */
export interface CellsNeeds extends EngineDeps, Pick<CellsOptions, 'openCell' | 'sealer'> {
  recovery: OverHeartbeats;
  accounts: StoredAccounts;
  machine: Machine;
}

/** Resolves when the first cell delivers. Throws `StoreUnavailable`. */
export async function openCells({ accounts, machine, openCell, sealer, ...first }: CellsNeeds): Promise<Engine> {
  const { clock, log, store, recovery } = first;
  const isHeldElsewhere: OverHeartbeats['isHeldElsewhere'] = (claimToken) => cells.hold(claimToken);
  const createFirst = (own: Store): Promise<Engine> =>
    createEngine({ ...first, store: own, recovery: { ...recovery, isHeldElsewhere } });
  const createOther = (own: Store, name: string): Promise<Engine> => {
    const { operatorEvents: _, ...shared } = first;
    const ownClock = new DatabaseClock(machine); // each database has its own
    return createEngine({
      ...shared,
      store: own,
      clock: ownClock,
      log: logWith(log, { cell: name }),
      recovery: { kind: 'heartbeat', clock: ownClock, timeoutMs: recovery.timeoutMs, isHeldElsewhere },
    });
  };
  const createOf = (own: Store, name?: string) => (name === undefined ? createFirst(own) : createOther(own, name));
  const cells: Cells = await Cells.open({ store, accounts, openCell, sealer, clock, log, createEngine: createOf });
  return engineOver(cells, clock);
}
