/** The simulated world's database, and the store that one process has over its own connection to it. */
import type { Store } from '../../src/engine/stores.ts';
import { BatchRunner } from '../../src/store/batch.ts';
import type { Driver } from '../../src/store/driver.ts';
import { SqliteDriver } from '../../src/store/drivers/sqlite/driver.ts';
import { GroupCommit } from '../../src/store/group-commit.ts';
import { migrate } from '../../src/store/migrations/index.ts';
import { runRead } from '../../src/store/reads.ts';
import { SqlStore } from '../../src/store/store.ts';

/** An empty database in memory. */
export async function openDatabase(): Promise<Driver> {
  const driver = new SqliteDriver({ path: ':memory:' });
  await migrate(driver);
  return driver;
}

/** The store as production has it, group commit included, over `driver`. */
export function storeOver(driver: Driver): Store {
  const runner = new BatchRunner(driver);
  const commits = new GroupCommit({
    flush: (commands) => runner.run(commands),
    onFatal: (error) => {
      throw error;
    },
  });
  return new SqlStore({
    write: (method, args) => commits.run(method, args),
    read: (method, args) => runRead(driver, method, args),
    close: () => commits.close(),
    listen: (listener) => commits.listen(listener),
    counts: () => commits.counts,
  });
}
