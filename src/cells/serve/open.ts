/** The cells of an installation on PostgreSQL behind one engine. */

import type { StoredAccounts } from '../../accounts/accounts.ts';
import type { Engine } from '../../engine/commands.ts';
import { createEngine } from '../../engine/create.ts';
import type { EngineDeps, Recovery } from '../../engine/deps.ts';
import { FIRST_CELL } from '../../engine/model.ts';
import type { OperatorEventsOptions } from '../../engine/operator-events/model.ts';
import type { Machine } from '../../engine/ports.ts';
import { StoreUnavailable } from '../../engine/store-errors.ts';
import { DatabaseClock } from '../../engine/workers/database-clock.ts';
import { fenceLimitMs } from '../../engine/workers/fence.ts';
import type { Store } from '../../store/store.ts';
import { logWith } from '../../telemetry/log-with.ts';
import { Cells, type CellsOptions } from './cells.ts';
import { ProjectFence } from './project-fence.ts';
import { engineOver } from './router.ts';

type OverHeartbeats = Extract<Recovery, { kind: 'heartbeat' }>;

/** What the engine of the first cell needs, and what opens the others. */
export interface CellsNeeds
  extends EngineDeps,
    Pick<CellsOptions, 'openCell' | 'watchCell' | 'sealer' | 'cellsOfWorker' | 'pausedMoves'> {
  recovery: OverHeartbeats;
  accounts: StoredAccounts;
  machine: Machine;
}

/** Resolves when the first cell delivers. Throws `StoreUnavailable`. */
export async function openCells({
  accounts,
  machine,
  openCell,
  watchCell,
  sealer,
  cellsOfWorker,
  pausedMoves,
  ...first
}: CellsNeeds): Promise<Engine> {
  const { clock, log, store, recovery, operatorEvents: events } = first;
  // A lost worker is noticed in every cell, and told of by the first.
  const { worker_lost: _, ...thresholdsElsewhere } = events?.thresholds ?? {};
  const firstName = () => accounts.cells.find(({ cellId }) => cellId === FIRST_CELL)?.name;
  let all: Engine | undefined;
  /** Undefined while there is only one cell. */
  const eventsOf = (name: string | undefined): ReturnType<NonNullable<OperatorEventsOptions['cell']>> =>
    name === undefined || events === undefined
      ? undefined
      : {
          name,
          saveElsewhere: async (message, hash) => {
            if (!all) throw new StoreUnavailable('the cells are being opened');
            await all.saveEvent(events.projectId, message, hash);
          },
        };
  const isHeldElsewhere: OverHeartbeats['isHeldElsewhere'] = (claimToken) => cells.hold(claimToken);
  const projects = new ProjectFence({
    ...{ clock, limitMs: fenceLimitMs(recovery.timeoutMs), log },
    nameOf: (projectId) => accounts.nameOf(projectId),
  });
  const createFirst = (own: Store): Promise<Engine> =>
    createEngine({
      ...first,
      store: own,
      recovery: { ...recovery, projects, isHeldElsewhere },
      operatorEvents: events && { ...events, cell: () => eventsOf(firstName()) },
    });
  const createOther = (own: Store, name: string): Promise<Engine> => {
    const ownClock = new DatabaseClock(machine); // each database has its own
    return createEngine({
      ...first,
      store: own,
      operatorEvents: events && { ...events, thresholds: thresholdsElsewhere, cell: () => eventsOf(name) },
      clock: ownClock,
      log: logWith(log, { cell: name }),
      recovery: { kind: 'heartbeat', clock: ownClock, timeoutMs: recovery.timeoutMs, projects, isHeldElsewhere },
    });
  };
  const createOf = (own: Store, name?: string) => (name === undefined ? createFirst(own) : createOther(own, name));
  const cells: Cells = await Cells.open({
    ...{ store, accounts, openCell, watchCell, sealer, clock, log, worker: first.worker },
    createEngine: createOf,
    tellsOperator: events !== undefined,
    timeoutMs: recovery.timeoutMs,
    cellsOfWorker,
    pausedMoves,
    projects,
  });
  all = engineOver(cells, clock);
  return all;
}
