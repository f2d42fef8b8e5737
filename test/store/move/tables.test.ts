/** A move knows every table and column of the database: it would lose the others. The moves: copy.full.test.ts. */
import { expect, it } from 'vitest';
import type { Driver } from '../../../src/store/driver.ts';
import { PostgresDriver } from '../../../src/store/drivers/postgres/driver.ts';
import { SqliteDriver } from '../../../src/store/drivers/sqlite/driver.ts';
import { migrate } from '../../../src/store/migrations/index.ts';
import { MOVED_TABLES, UNCOPIED_COLUMNS, UNCOPIED_TABLES } from '../../../src/store/move/tables.ts';
import { systemClock } from '../../../src/system/system.ts';
import { freshDatabase } from '../../support/postgres/shared.ts';
import { columnsOf } from './filled.ts';

const KINDS: Record<string, () => Promise<Driver>> = {
  SQLite: async () => new SqliteDriver({ path: ':memory:' }),
  PostgreSQL: async () => {
    const limits = { connectionsMax: 3, timeoutMs: 10_000, prepares: true, clock: systemClock };
    return new PostgresDriver({ url: await freshDatabase(), ...limits });
  },
};

it.each(Object.entries(KINDS))('a move has every table and column of %s', async (kind, open) => {
  const driver = await open();
  await migrate(driver);
  const found = await tablesOf(driver, kind);
  await driver.close();
  const moved = Object.fromEntries(MOVED_TABLES.map(({ name, columns }) => [name, columns.toSorted()]));
  for (const name of UNCOPIED_TABLES) {
    expect(found).toHaveProperty(name);
    delete found[name];
  }
  const kept = kind === 'PostgreSQL' ? Object.entries(UNCOPIED_COLUMNS) : [];
  for (const [name, column] of kept) {
    expect(found[name]).toContain(column);
    found[name] = found[name]?.filter((each) => each !== column) ?? [];
  }
  expect(found).toEqual(moved);
});

/** The columns of all tables, sorted, as the database has them. */
async function tablesOf(driver: Driver, kind: string): Promise<Record<string, string[]>> {
  const found: Record<string, string[]> = {};
  if (kind === 'SQLite') {
    const tables = await driver.read((queries) =>
      queries.query<{ name: string }>("select name from sqlite_schema where type = 'table'"),
    );
    for (const { name } of tables)
      found[name] = (await columnsOf(driver, name)).map((column) => column.name).toSorted();
    return found;
  }
  const columns = await driver.read((queries) =>
    queries.query<{ table_name: string; column_name: string }>(
      `select c.table_name, c.column_name from information_schema.columns c
       join pg_class t on t.oid = (quote_ident(c.table_schema) || '.' || quote_ident(c.table_name))::regclass
       -- What the driver keeps for itself is no part of the store.
       where c.table_schema = current_schema() and not t.relispartition and c.table_name <> 'log_expiry'`,
    ),
  );
  for (const { table_name, column_name } of columns) {
    found[table_name] = [...(found[table_name] ?? []), column_name];
  }
  for (const names of Object.values(found)) names.sort();
  return found;
}
