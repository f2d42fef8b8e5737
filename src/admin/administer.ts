/**
 * Runs the operator's commands in the server that has the database open, or in this process if no server has the database
 * open.
 */
import type { Sealer } from '../accounts/accounts.ts';
import { explainWrongKey } from '../accounts/open-accounts.ts';
import { emptiestCell } from '../cells/operate/measure-cells.ts';
import type { Config } from '../config/table.ts';
import { StoreInUse } from '../store/drivers/sqlite/lock.ts';
import type { Store } from '../store/store.ts';
import { CannotStart } from '../system/cannot-start.ts';
import { createSystemRandomness, pause, systemClock } from '../system/system.ts';
import { databaseOf, openSealer, openStore } from './open-store.ts';
import { NoServerListening, RemoteAdministration } from './socket/client.ts';
import { type Administration, CommandRefused } from './socket/commands.ts';
import { socketPathOf } from './socket/socket-path.ts';
import { StoredAdministration } from './socket/stored-administration.ts';
import { waitForConfirmations } from './socket/wait-for-confirmations.ts';

/** The maximum of tries. A try fails while another process, such as a starting server, is opening the database. */
const TRIES = 30;
const BETWEEN_TRIES_MS = 100;

/** Runs `work`, which must run a single command, because it may be retried. Throws `CannotStart` for the operator. */
export async function administer<T>(config: Config, work: (on: Administration) => Promise<T>): Promise<T> {
  const database = databaseOf(config);
  try {
    return await explainWrongKey(config.dataDir, () =>
      database.kind === 'sqlite' ? runInOwnerOrHere(config, database.path, work) : runHere(config, work),
    );
  } catch (error) {
    if (error instanceof CommandRefused) throw new CannotStart(error.message, { cause: error });
    throw error;
  }
}

/**
 * Runs `work` in the server that has the file open, or in this process if no server has the file open. Retries for a few
 * seconds while another process, such as a command, has the file locked and accepts no commands.
 */
async function runInOwnerOrHere<T>(config: Config, path: string, work: (on: Administration) => Promise<T>): Promise<T> {
  const remote = new RemoteAdministration(socketPathOf(path));
  for (let tries = 1; ; tries += 1) {
    try {
      return await work(remote);
    } catch (error) {
      if (!(error instanceof NoServerListening)) throw error;
    }
    try {
      return await runHere(config, work);
    } catch (error) {
      if (!(error instanceof CannotStart && error.cause instanceof StoreInUse)) throw error;
      if (tries < TRIES) await pause(BETWEEN_TRIES_MS);
      else throw new CannotStart(`${error.message}; it accepts no commands, for example because it is "waypost dev"`);
    }
  }
}

/** The operator's commands, on a store that this process has opened only to run these commands. */
export function administrationOn(config: Config, store: Store, sealer: () => Sealer): StoredAdministration {
  return new StoredAdministration({
    ...{ store, clock: systemClock, randomness: createSystemRandomness(), sealer },
    chooseCell: () => emptiestCell(config, store, sealer()),
    // New projects and tokens need no confirmation: a worker reads all tokens again when a request has an unknown token.
    notifyWorkers: async (revoked) => {
      if (!revoked || databaseOf(config).kind === 'sqlite') return;
      const { workerTimeoutMs } = config;
      const behind = await waitForConfirmations(store, systemClock, workerTimeoutMs);
      if (behind.length === 0) return;
      throw new CommandRefused(
        `${revoked.id} is revoked in the database, but these workers have not confirmed it, and may accept the token until they do: ${behind.join(', ')}`,
      );
    },
  });
}

async function runHere<T>(config: Config, work: (on: Administration) => Promise<T>): Promise<T> {
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
