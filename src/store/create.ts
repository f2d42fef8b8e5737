/** The store over one driver in the caller's own thread. */
import type { ClaimToken } from '../engine/model.ts';
import type { StoreLimits } from '../engine/stores.ts';
import { BatchRunner } from './batches/batch.ts';
import { type Batching, type Flush, GroupCommit } from './batches/group-commit.ts';
import { type Connection, StoreEvents } from './connection.ts';
import { storeOver } from './derive.ts';
import type { Driver } from './driver.ts';
import { runRead, traitsOf } from './operations/all.ts';
import type { SqlStore } from './store.ts';

export interface CreateStoreOptions {
  /** Told once when the database cannot be trusted any more; all commands are refused from then on. */
  onFatal?: (error: Error) => void;
  /** How this worker and the others on the same database tell each other what is due. Closed with the store. */
  notices?: {
    tell(dueAtMs: number): void;
    tellOfAccounts(): void;
    tellOfCancelled(claimTokens: readonly ClaimToken[]): void;
    close(): Promise<void>;
  };
  dropTables?: Connection['dropTables'];
  /** Default: none. */
  limits?: StoreLimits;
  batch?: Partial<Batching>;
  /** Default: a store has its own. */
  events?: StoreEvents;
}

/**
 * A store over `driver`, which is already migrated and is closed with the store. It waits for nothing but the driver
 * and promises. So over a driver in the same process, a simulated clock decides everything (P15).
 */
export function createStore(driver: Driver, options: CreateStoreOptions = {}): SqlStore {
  const { events = new StoreEvents(), notices, onFatal = () => {} } = options;
  const runner = new BatchRunner(driver, options.limits);
  const flush: Flush = async (commands, suspects) => {
    const outcome = await runner.run(commands, suspects);
    if (commands.some((command) => traitsOf(command).changesAccounts)) notices?.tellOfAccounts();
    if (outcome.othersDueAtMs !== null) notices?.tell(outcome.othersDueAtMs);
    if (outcome.cancelledClaims.length > 0) notices?.tellOfCancelled(outcome.cancelledClaims);
    try {
      driver.maintain?.();
    } catch (error) {
      for (const each of all) each.fail(error instanceof Error ? error : new Error(String(error)));
    }
    return outcome;
  };
  const commits = new GroupCommit(flush, events, onFatal, options.batch);
  // A claim takes many round trips. Where transactions go side by side, nothing else waits for them.
  const claims = driver.dialect.manyWriters ? new GroupCommit(flush, events, onFatal, options.batch) : commits;
  const all = [...new Set([commits, claims])];
  return storeOver({
    events,
    write: (method, args) => (method === 'claim' ? claims : commits).run(method, args),
    read: (method, args) => runRead(driver, method, args, runner),
    ...(options.dropTables && { dropTables: options.dropTables }),
    counts: () => sumOf(all.map(({ counts }) => counts)),
    guardProjects: () => runner.guardProjects(),
    close: async () => {
      await Promise.all(all.map((each) => each.close()));
      await notices?.close();
      await driver.close();
    },
  });
}

type Counts = GroupCommit['counts'];

function sumOf(counts: readonly Counts[]): Counts {
  const sum = (of: keyof Counts) => counts.reduce((total, each) => total + each[of], 0);
  return { batches: sum('batches'), commands: sum('commands'), waiting: sum('waiting') };
}
