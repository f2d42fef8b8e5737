/** What `waypost doctor` does: reads a store, of a running server or a stopped one, and says whether it is sound. */
import { existsSync } from 'node:fs';
import type { Config } from './config/table.ts';
import { CannotStart, databasePath, messageOf } from './open-store.ts';
import { SqliteDriver } from './store/drivers/sqlite/driver.ts';
import { type Census, examine, type Finding, takeCensus } from './store/sql/invariants.ts';

export interface Examination {
  census: Census;
  findings: Finding[];
}

/** Changes nothing, and needs no lock: it sees one snapshot of what is committed. Throws `CannotStart`. */
export async function examineStore(config: Config): Promise<Examination> {
  const path = databasePath(config);
  if (path === ':memory:') throw new CannotStart('a store in memory cannot be examined from outside its server');
  if (!existsSync(path)) throw new CannotStart(`there is no database ${path}`);
  try {
    const driver = new SqliteDriver({ path, readOnly: true });
    try {
      return await driver.read(async (queries) => ({
        census: await takeCensus(queries),
        findings: await examine(queries),
      }));
    } finally {
      await driver.close();
    }
  } catch (error) {
    throw new CannotStart(`cannot read the database ${path}: ${messageOf(error)}`, { cause: error });
  }
}
