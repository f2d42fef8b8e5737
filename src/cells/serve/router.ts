/** Combines the engines of all cells into one engine for the API: each command goes to the cell of its project. */
import type { CellState, Engine, UnavailableCell } from '../../engine/commands.ts';
import { withTimeLimit } from '../../engine/loops/time-limit.ts';
import type { ProjectId } from '../../engine/model.ts';
import type { Clock } from '../../engine/ports.ts';
import { type ProjectStore, routedStore } from '../../engine/project-store.ts';
import { ProjectAway, publicReason, StoreUnavailable } from '../../engine/store-errors.ts';
import type { Cells } from './cells.ts';

/** How long `/readyz` waits for a cell other than the first. */
const PING_MS = 1_000;

/** The commands that are carried out in the cell of the project. */
type ProjectCommandName = Exclude<
  {
    [M in Exclude<keyof Engine, 'cells' | 'cellOf'>]: Engine[M] extends (
      projectId: ProjectId,
      ...rest: never[]
    ) => Promise<unknown>
      ? M
      : never;
  }[Exclude<keyof Engine, 'cells' | 'cellOf'>],
  'quiesce' | 'drain' | 'ping' | 'readTotals'
>;

export function engineOver(cells: Cells, clock: Clock): Engine {
  const readTotals = () => cells.first.readTotals();
  const own: Omit<Engine, ProjectCommandName> = {
    checkAdmission: (projectId) => cells.openedOf(projectId)?.engine.checkAdmission(projectId),
    storeOf: (projectId) => storeInCell(cells, projectId),
    watchLog: (projectId, watcher) => cells.watchLog(projectId, watcher),
    retention: cells.first.retention,
    get inFlight() {
      return cells.engines.reduce((sum, { inFlight }) => sum + inFlight, 0);
    },
    busiestProjects: (count) =>
      cells.engines
        .flatMap((engine) => engine.busiestProjects(count))
        .toSorted(([, a], [, b]) => b - a)
        .slice(0, count),
    get workersAlive() {
      return cells.first.workersAlive;
    },
    get otherWorkers() {
      return cells.first.otherWorkers;
    },
    get cells() {
      const others = [...cells.others];
      if (others.length === 0) return [];
      const { inFlight } = cells.first;
      const first: CellState = { name: cells.firstName, inFlight, state: 'open', isServed: true, readTotals };
      return [first, ...others];
    },
    readTotals,
    cellOf: (projectId) => cells.nameOf(projectId),
    hasCall: (claimToken) => cells.engines.some((engine) => engine.hasCall(claimToken)),
    hasActiveClaim: (claimToken) => cells.hasClaim(claimToken),
    ping: () => ping(cells, clock),
    quiesce: (limitMs) => cells.quiesce(limitMs),
    drain: (limitMs) => cells.drain(limitMs),
  };
  return new Proxy(own as Engine, {
    get: (target, name) => {
      const isOfProject = !(name in target) && name in cells.first;
      return isOfProject ? commandInCell(cells, name as ProjectCommandName) : Reflect.get(target, name);
    },
  });
}

type Command = (projectId: ProjectId, ...rest: unknown[]) => Promise<unknown>;

/** Runs the command in the cell of its project. A resting cell is opened first. */
function commandInCell(cells: Cells, name: ProjectCommandName): Command {
  return (...args) =>
    inCellOf(cells, args[0], (engine) => {
      // Only the first store has the newest version of the accounts. In another cell, a caller is admitted by this
      // worker's accounts.
      const own = name === 'publish' && engine !== cells.first ? args.slice(0, 2) : args;
      return Reflect.apply(engine[name], engine, own);
    });
}

function storeInCell(cells: Cells, projectId: ProjectId): ProjectStore {
  return routedStore((call) => inCellOf(cells, projectId, (engine) => call(engine.storeOf(projectId))));
}

/** Calls `work` in the project's cell. If the project has moved, reads the accounts again and retries. */
async function inCellOf<T>(cells: Cells, projectId: ProjectId, work: (engine: Engine) => Promise<T>): Promise<T> {
  try {
    return await cells.use(projectId, ({ engine }) => work(engine));
  } catch (error) {
    if (!(error instanceof ProjectAway && error.isGone)) throw error;
    await cells.refresh(projectId);
    return cells.use(projectId, ({ engine }) => work(engine));
  }
}

/** The cells that cannot read and save. Throws `StoreUnavailable` when no cell can read and save. */
async function ping(cells: Cells, clock: Clock): Promise<readonly UnavailableCell[]> {
  const others = [...cells.others];
  if (others.length === 0) return cells.first.ping();
  const away: UnavailableCell[] = [];
  const note = async (name: string, engine: Engine): Promise<void> => {
    const reason = await failureOf(engine, clock);
    if (reason !== undefined) away.push({ name, reason });
  };
  const pings = [note(cells.firstName, cells.first)];
  for (const { name, opened, awayReason } of others) {
    if (opened) pings.push(note(name, opened.engine));
    else if (awayReason !== undefined) away.push({ name, reason: awayReason });
  }
  await Promise.all(pings);
  if (away.length === others.length + 1) {
    const reasons = away.map(({ name, reason }) => `${name}: ${reason}`).join('; ');
    throw new StoreUnavailable(`no cell reads and saves (${reasons})`);
  }
  return away;
}

/** Why the store of the engine cannot save, or does not respond in time. Undefined if the store can save. */
function failureOf(engine: Engine, clock: Clock): Promise<string | undefined> {
  const pinged = engine.ping().then(() => '', publicReason);
  return withTimeLimit(clock, PING_MS, pinged).then(
    (reason = `it does not respond within ${PING_MS} ms`) => reason || undefined,
  );
}
