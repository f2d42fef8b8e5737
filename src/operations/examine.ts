/** What `waypost doctor` does: reads a store, of a running server or a stopped one, and says whether it is sound. */
import { existsSync } from 'node:fs';
import type { Config } from '../config/table.ts';
import type { Driver, Queries } from '../store/driver.ts';
import { PostgresDriver } from '../store/drivers/postgres/driver.ts';
import { isExpiring } from '../store/drivers/postgres/log-days.ts';
import { SqliteDriver } from '../store/drivers/sqlite/driver.ts';
import { type Census, examine, type Finding, takeCensus } from '../store/operations/invariants.ts';
import { CannotStart } from '../system/cannot-start.ts';
import { systemClock } from '../system/system.ts';
import { databaseOf, messageOf } from './open-store.ts';

/** Long, because the examination walks through all that is stored. */
const EXAMINATION_LIMIT_MS = 30 * 60_000;

export interface Examination {
  census: Census;
  findings: Finding[];
}

/** Changes nothing, and needs no lock: it sees one snapshot of what is committed. Throws `CannotStart`. */
export async function examineStore(config: Config): Promise<Examination> {
  const database = databaseOf(config);
  if (database.kind === 'postgres') return examineServer(database.url, config);
  const { path } = database;
  if (path === ':memory:') throw new CannotStart('a store in memory cannot be examined from outside its server');
  if (!existsSync(path)) throw new CannotStart(`there is no database ${path}`);
  try {
    return await examineWith(new SqliteDriver({ path, readOnly: true }));
  } catch (error) {
    throw new CannotStart(`cannot read the database ${path}: ${messageOf(error)}`, { cause: error });
  }
}

async function examineServer(url: string, { databasePrepare }: Config): Promise<Examination> {
  const driver = new PostgresDriver({
    url,
    connectionsMax: 1,
    prepares: databasePrepare,
    timeoutMs: EXAMINATION_LIMIT_MS,
    clock: systemClock,
  });
  try {
    return await examineWith(driver, isExpiring);
  } catch (error) {
    throw new CannotStart(`cannot read the database: ${messageOf(error)}`, { cause: error });
  }
}

async function examineWith(
  driver: Driver,
  isExpiringIn: (queries: Queries) => Promise<boolean> = async () => false,
): Promise<Examination> {
  try {
    return await driver.read(async (queries) => {
      const isExpiring = await isExpiringIn(queries);
      return { census: await takeCensus(queries), findings: await examine(queries, { isExpiring }) };
    });
  } finally {
    await driver.close();
  }
}
