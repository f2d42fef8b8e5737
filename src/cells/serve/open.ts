/** Creates the engine of a worker, which serves the only store, or all cells of an installation on PostgreSQL. */
import type { Sealer, StoredAccounts } from '../../accounts/accounts.ts';
import { databaseOf, type OpenedStore } from '../../admin/open-store.ts';
import type { Config } from '../../config/table.ts';
import type { Engine } from '../../engine/commands.ts';
import { createEngine } from '../../engine/create.ts';
import type { EngineDeps } from '../../engine/deps.ts';
import { type CellId, type ClaimToken, FIRST_CELL } from '../../engine/model.ts';
import type { OperatorEventsOptions } from '../../engine/operator-events/model.ts';
import type { Machine } from '../../engine/ports.ts';
import { StoreUnavailable } from '../../engine/store-errors.ts';
import { DatabaseClock } from '../../engine/workers/database-clock.ts';
import { fenceLimitMs } from '../../engine/workers/fence.ts';
import { ProjectFence } from '../../engine/workers/project-fence.ts';
import { logWith } from '../../telemetry/log-with.ts';
import { openCellDriver } from '../operate/cells.ts';
import { Cells, type CreateEngine } from './cells.ts';
import type { CellsContext } from './context.ts';
import { engineOver } from './router.ts';

/** The time limit of a statement that resumes a project which an interrupted move has left paused. */
const RESUME_TIMEOUT_MS = 5_000;

/** The dependencies with which `openEngine` serves several cells, besides the dependencies of each engine. */
interface Installation {
  config: Config;
  store: OpenedStore;
  accounts: StoredAccounts;
  sealer: Sealer;
  machine: Machine;
}

/** Creates the engine of a worker, on its only store or on all cells. Throws `StoreUnavailable`. */
export function openEngine(engine: EngineDeps, installation: Installation): Promise<Engine> {
  const { config, store, accounts, sealer, machine } = installation;
  const database = databaseOf(config);
  const { recovery } = engine;
  const { openCell, watchCell } = store;
  if (!openCell || database.kind !== 'postgres' || recovery?.kind !== 'heartbeat') return createEngine(engine);
  const openDriver = (cellId: CellId) =>
    openCellDriver({ ...database, ...sealer }, accounts.cells, cellId, RESUME_TIMEOUT_MS);
  return openCells({ first: { ...engine, recovery }, accounts, sealer, machine, openCell, watchCell, openDriver });
}

/** Resolves when the first cell delivers. Throws `StoreUnavailable`. */
export async function openCells(context: CellsContext): Promise<Engine> {
  const { first, accounts, machine } = context;
  const { clock, log, operatorEvents: events } = first;
  const limitMs = fenceLimitMs(first.recovery.timeoutMs);
  const projects = new ProjectFence(clock, log, limitMs, (projectId) => accounts.nameOf(projectId));
  const isActiveElsewhere = (claimToken: ClaimToken) => cells.hasClaim(claimToken);
  const recovery = { ...first.recovery, projects, isActiveElsewhere };
  const firstName = () => accounts.cells.find(({ cellId }) => cellId === FIRST_CELL)?.name;
  let combined: Engine | undefined;
  /** The cell for the operator events of an engine. Undefined while there is only one cell. */
  const eventsOf = (name: string | undefined): ReturnType<NonNullable<OperatorEventsOptions['cell']>> =>
    name === undefined || events === undefined
      ? undefined
      : {
          name,
          saveElsewhere: async (message, hash) => {
            if (!combined) throw new StoreUnavailable('the cells are being opened');
            await combined.saveEvent(events.projectId, message, hash);
          },
        };
  const create: CreateEngine = (store, name) => {
    if (name === undefined) {
      const operatorEvents = events && { ...events, cell: () => eventsOf(firstName()) };
      return createEngine({ ...first, store, recovery, operatorEvents });
    }
    const cellClock = new DatabaseClock(machine);
    const { accounts: _, ...recoveryWithoutAccounts } = recovery;
    // The engine of each cell notices a lost worker; only the engine of the first cell reports the loss.
    const { worker_lost: __, ...thresholds } = events?.thresholds ?? {};
    return createEngine({
      ...first,
      store,
      clock: cellClock,
      log: logWith(log, { cell: name }),
      recovery: { ...recoveryWithoutAccounts, clock: cellClock },
      operatorEvents: events && { ...events, thresholds, cell: () => eventsOf(name) },
    });
  };
  const cells: Cells = await Cells.open(context, create, projects);
  combined = engineOver(cells, clock);
  return combined;
}
