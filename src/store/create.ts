/** The store over one driver in the caller's own thread. */
import type { ClaimToken } from '../engine/model.ts';
import type { StoreLimits } from '../engine/stores.ts';
import { BatchRunner } from './batches/batch.ts';
import { GroupCommit, type GroupCommitOptions } from './batches/group-commit.ts';
import type { Connection } from './connection.ts';
import { storeOver } from './derive.ts';
import type { Driver } from './driver.ts';
import { runRead, traitsOf } from './operations/all.ts';
import type { SqlStore } from './store.ts';

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
    tellOfCancelled(claimTokens: readonly ClaimToken[]): void;
    listenForCancelled(listener: (claimTokens: ClaimToken[]) => void): void;
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
  const toCommit: GroupCommitOptions = {
    flush: async (commands, suspects) => {
      const outcome = await runner.run(commands, suspects);
      if (commands.some((command) => traitsOf(command).changesAccounts)) options.notices?.tellOfAccounts();
      if (outcome.othersDueAtMs !== null) options.notices?.tell(outcome.othersDueAtMs);
      if (outcome.cancelledClaims.length > 0) options.notices?.tellOfCancelled(outcome.cancelledClaims);
      try {
        options.afterBatch?.();
      } catch (error) {
        for (const each of all) each.fail(error instanceof Error ? error : new Error(String(error)));
      }
      return outcome;
    },
    onFatal: options.onFatal ?? (() => {}),
    ...options.batch,
  };
  const commits = new GroupCommit(toCommit);
  // A claim takes many round trips. Where transactions go side by side, nothing else waits for them.
  const claims = driver.dialect.manyWriters ? new GroupCommit(toCommit) : commits;
  const all = [...new Set([commits, claims])];
  const connection: Connection = {
    write: (method, args) => (method === 'claim' ? claims : commits).run(method, args),
    read: (method, args) => runRead(driver, method, args, runner),
    onDue: (listener) => {
      for (const each of all) each.listen(listener);
      options.notices?.listen(listener);
    },
    onWaitingLine: () => {}, // the lines of other processes are read with each heartbeat, see `Heartbeat`
    ...(options.dropTables && { dropTables: options.dropTables }),
    onAccountsChanged: (listener) => options.notices?.listenForAccounts(listener),
    onCancelled: (listener) => {
      for (const each of all) each.listenForCancelled(listener);
      options.notices?.listenForCancelled(listener);
    },
    onCommitUnknown: (listener) => {
      for (const each of all) each.listenForCommitUnknown(listener);
    },
    counts: () => sumOf(all.map(({ counts }) => counts)),
    guardProjects: () => runner.guardProjects(),
    close: async () => {
      await Promise.all(all.map((each) => each.close()));
      await options.notices?.close();
      await driver.close();
    },
  };
  return storeOver(connection);
}

type Counts = GroupCommit['counts'];

function sumOf(counts: readonly Counts[]): Counts {
  const sum = (of: keyof Counts) => counts.reduce((total, each) => total + each[of], 0);
  return { batches: sum('batches'), commands: sum('commands'), waiting: sum('waiting') };
}
