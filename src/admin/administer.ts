/** Runs the operator's commands in the server that has the database open, or in this process if there is none. */
import type { Sealer } from '../accounts/accounts.ts';
import { explainWrongKey } from '../accounts/open-accounts.ts';
import { emptiestCell } from '../cells/operate/measure-cells.ts';
import type { Config } from '../config/table.ts';
import { StoreInUse } from '../store/drivers/sqlite/lock.ts';
import type { Store } from '../store/store.ts';
import { CannotStart } from '../system/cannot-start.ts';
import { createSystemRandomness, pause, systemClock } from '../system/system.ts';
import { databaseOf, openSealer, openStore } from './open-store.ts';
import { NobodyListens, RemoteAdministration } from './socket/ask.ts';
import { type Administration, Refused } from './socket/commands.ts';
import { untilAllKnow } from './socket/everywhere.ts';
import { socketPathOf } from './socket/socket-path.ts';
import { StoredAdministration } from './socket/stored.ts';

/** While another process opens the database, such as a starting server, it takes no commands for a moment. */
const TRIES = 30;
const BETWEEN_TRIES_MS = 100;

/**
 * Runs `work`, which must ask for one thing only: it may be run again from the start. Throws `CannotStart` with what
 * the operator must know.
 */
export async function administer<T>(config: Config, work: (on: Administration) => Promise<T>): Promise<T> {
  const database = databaseOf(config);
  try {
    return await explainWrongKey(config.dataDir, () =>
      database.kind === 'sqlite' ? workWhereItIsOpen(config, database.path, work) : workHere(config, work),
    );
  } catch (error) {
    if (error instanceof Refused) throw new CannotStart(error.message, { cause: error });
    throw error;
  }
}

/** Runs in the server that has the file open, or here. Waits for a process that has the file only for a moment. */
async function workWhereItIsOpen<T>(
  config: Config,
  path: string,
  work: (on: Administration) => Promise<T>,
): Promise<T> {
  const remote = new RemoteAdministration(socketPathOf(path));
  for (let tries = 1; ; tries += 1) {
    try {
      return await work(remote);
    } catch (error) {
      if (!(error instanceof NobodyListens)) throw error;
    }
    try {
      return await workHere(config, work);
    } catch (error) {
      if (!(error instanceof CannotStart && error.cause instanceof StoreInUse)) throw error;
      if (tries < TRIES) await pause(BETWEEN_TRIES_MS);
      else throw new CannotStart(`${error.message}; it takes no commands, as a development server does not`);
    }
  }
}

/** On a store that no server of this process has open. */
export function administrationOn(config: Config, store: Store, sealer: () => Sealer): StoredAdministration {
  return new StoredAdministration({
    ...{ store, clock: systemClock, randomness: createSystemRandomness(), sealer },
    chooseCell: () => emptiestCell(config, store, sealer()),
    // New projects and tokens need no wait: a worker looks for them when a request names one.
    tellWorkers: async (revoked) => {
      if (!revoked || databaseOf(config).kind === 'sqlite') return;
      const { workerTimeoutMs } = config;
      const behind = await untilAllKnow(store, systemClock, workerTimeoutMs);
      if (behind.length === 0) return;
      throw new Refused(
        `${revoked.id} is revoked in the database, but these workers have not said that they know of it, and may let it in until they do: ${behind.join(', ')}`,
      );
    },
  });
}

async function workHere<T>(config: Config, work: (on: Administration) => Promise<T>): Promise<T> {
  let failure: Error | undefined;
  const onFatal = (error: Error) => {
    failure = error;
  };
  const store = await openStore(config, { onFatal, create: false, isInline: true });
  try {
    return await work(administrationOn(config, store, () => openSealer(config, createSystemRandomness())));
  } catch (error) {
    throw failure ?? error;
  } finally {
    await store.close();
  }
}
