/** The store over one driver in the caller's own thread. */
import type { StoreLimits } from '../engine/stores.ts';
import { BatchRunner } from './batches/batch.ts';
import { GroupCommit, type GroupCommitOptions } from './batches/group-commit.ts';
import type { Connection } from './connection.ts';
import type { Driver } from './driver.ts';
import { runRead, traitsOf } from './operations/all.ts';
import { SqlStore } from './store.ts';

export interface CreateStoreOptions {
  /** Told once when the database cannot be trusted any more; all commands are refused from then on. */
  onFatal?: (error: Error) => void;
  /** Upkeep of the database after each batch. When it throws, that is fatal, but what was committed stays so. */
  afterBatch?: () => void;
  /** How this worker and the others on the same database tell each other what is due. Closed with the store. */
  notices?: {
    tell(dueAtMs: number): void;
    listen(listener: (dueAtMs: number) => void): void;
    tellOfAccounts(): void;
    listenForAccounts(listener: () => void): void;
    close(): Promise<void>;
  };
  dropTables?: Connection['dropTables'];
  /** Default: none. */
  limits?: StoreLimits;
  /** What goes into one transaction; see `GroupCommitOptions`. */
  batch?: Pick<GroupCommitOptions, 'costMax' | 'endOfTurn' | 'late' | 'elapsedMs' | 'watch' | 'aside'>;
}

/**
 * A store over `driver`, which is already migrated and is closed with the store. It waits for nothing but the driver
 * and promises. So over a driver in the same process, a simulated clock decides everything (P15).
 */
export function createStore(driver: Driver, options: CreateStoreOptions = {}): SqlStore {
  const runner = new BatchRunner(driver, options.limits);
  const commits: GroupCommit = new GroupCommit({
    flush: async (commands, suspects) => {
      const outcome = await runner.run(commands, suspects);
      if (commands.some((command) => traitsOf(command).changesAccounts)) options.notices?.tellOfAccounts();
      if (outcome.othersDueAtMs !== null) options.notices?.tell(outcome.othersDueAtMs);
      try {
        options.afterBatch?.();
      } catch (error) {
        commits.fail(error instanceof Error ? error : new Error(String(error)));
      }
      return outcome;
    },
    onFatal: options.onFatal ?? (() => {}),
    ...options.batch,
  });
  const connection: Connection = {
    write: (method, args) => commits.run(method, args),
    read: (method, args) => runRead(driver, method, args, runner),
    listen: (listener) => {
      commits.listen(listener);
      options.notices?.listen(listener);
    },
    listenForWaitingLines: () => {}, // the lines of other processes are read with each heartbeat, see `Heartbeat`
    ...(options.dropTables && { dropTables: options.dropTables }),
    listenForAccounts: (listener) => options.notices?.listenForAccounts(listener),
    listenForCommitUnknown: (listener) => commits.listenForCommitUnknown(listener),
    counts: () => commits.counts,
    guardProjects: () => runner.guardProjects(),
    close: async () => {
      await commits.close();
      await options.notices?.close();
      await driver.close();
    },
  };
  return new SqlStore(connection);
}
