/** Creates a store over a driver that runs in the caller's thread. */
import type { ClaimToken } from '../engine/model.ts';
import type { StoreLimits } from '../engine/stores.ts';
import { BatchRunner } from './batches/batch.ts';
import { type Batching, type Flush, GroupCommit } from './batches/group-commit.ts';
import { type Connection, StoreEvents } from './connection.ts';
import { deriveStore } from './derive.ts';
import type { Driver } from './driver.ts';
import { runRead, traitsOf } from './operations/all.ts';
import type { SqlStore } from './store.ts';

export interface CreateStoreOptions {
  /** Called once, when the database cannot be trusted any more. The store then refuses all commands. */
  onFatal?: (error: Error) => void;
  /** Notifies the other workers on the same database. Closed with the store. */
  notifications?: {
    publishDue(dueAtMs: number): void;
    publishAccountsChange(): void;
    publishCancelled(claimTokens: readonly ClaimToken[]): void;
    close(): Promise<void>;
  };
  dropTables?: Connection['dropTables'];
  /** Default: none. */
  limits?: StoreLimits;
  batch?: Partial<Batching>;
  /** Default: new events. */
  events?: StoreEvents;
}

/**
 * Creates a store over `driver`, whose schema must be up to date. Closing the store closes the driver. The store uses no
 * timers of its own, so with an in-process driver a simulated clock determines everything (P15).
 */
export function createStore(driver: Driver, options: CreateStoreOptions = {}): SqlStore {
  const { events = new StoreEvents(), notifications, onFatal = () => {} } = options;
  const runner = new BatchRunner(driver, options.limits);
  const flush: Flush = async (commands, suspects) => {
    const outcome = await runner.run(commands, suspects);
    if (commands.some((command) => traitsOf(command).changesAccounts)) notifications?.publishAccountsChange();
    if (outcome.othersDueAtMs !== null) notifications?.publishDue(outcome.othersDueAtMs);
    if (outcome.cancelledClaims.length > 0) notifications?.publishCancelled(outcome.cancelledClaims);
    try {
      driver.maintain?.();
    } catch (error) {
      for (const each of all) each.fail(error instanceof Error ? error : new Error(String(error)));
    }
    return outcome;
  };
  const commits = new GroupCommit(flush, events, onFatal, options.batch);
  // A claim takes many round trips. Where transactions run concurrently, claims get batches of their own.
  const claims = driver.dialect.manyWriters ? new GroupCommit(flush, events, onFatal, options.batch) : commits;
  const all = [...new Set([commits, claims])];
  return deriveStore({
    events,
    write: (method, args) => (method === 'claim' ? claims : commits).run(method, args),
    read: (method, args) => runRead(driver, method, args, runner),
    ...(options.dropTables && { dropTables: options.dropTables }),
    counts: () => sumOf(all.map(({ counts }) => counts)),
    guardProjects: () => runner.guardProjects(),
    close: async () => {
      await Promise.all(all.map((each) => each.close()));
      await notifications?.close();
      await driver.close();
    },
  });
}

type Counts = GroupCommit['counts'];

function sumOf(counts: readonly Counts[]): Counts {
  const sum = (of: keyof Counts) => counts.reduce((total, each) => total + each[of], 0);
  return { batches: sum('batches'), commands: sum('commands'), waiting: sum('waiting') };
}
