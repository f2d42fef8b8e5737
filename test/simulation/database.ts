/** The simulated world's database, and the store that one process has over its own connection to it. */

import type { StoreLimits } from '../../src/engine/stores.ts';
import { BatchRunner } from '../../src/store/batches/batch.ts';
import { GroupCommit } from '../../src/store/batches/group-commit.ts';
import { StoreEvents } from '../../src/store/connection.ts';
import { deriveStore as storeOfConnection } from '../../src/store/derive.ts';
import type { Driver } from '../../src/store/driver.ts';
import { SqliteDriver } from '../../src/store/drivers/sqlite/driver.ts';
import { migrate } from '../../src/store/migrations/index.ts';
import { runRead } from '../../src/store/operations/all.ts';
import type { Store } from '../../src/store/store.ts';

/** Opens a database that contains one project, and nothing else. */
export async function openDatabase(driver: Driver = new SqliteDriver({ path: ':memory:' })): Promise<Driver> {
  await migrate(driver);
  await storeOver(driver).projects.ensureProject({
    name: 'simulated',
    signingKeys: { current: 'sealed', next: 'sealed' },
    nowMs: 0,
  });
  return driver;
}

interface Batching {
  costMax?: number;
  /** Wraps the execution of a batch, for example to add its duration. */
  around?: <T>(commands: number, run: () => Promise<T>) => Promise<T>;
}

/** The production store over `driver`, including group commit. */
export function storeOver(
  driver: Driver,
  limits?: StoreLimits,
  { costMax, around = (_, run) => run() }: Batching = {},
): Store {
  const runner = new BatchRunner(driver, limits);
  const events = new StoreEvents();
  const commits = new GroupCommit(
    (commands) => around(commands.length, () => runner.run(commands)),
    events,
    (error) => {
      throw error;
    },
    { ...(costMax !== undefined && { costMax }) },
  );
  return storeOfConnection({
    events,
    write: (method, args) => commits.run(method, args),
    read: (method, args) => runRead(driver, method, args, runner),
    close: () => commits.close(),
    counts: () => commits.counts,
    guardProjects: () => runner.guardProjects(),
  });
}
