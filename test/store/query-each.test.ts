/** One query for many values in one transaction. */
import { describe, expect, it } from 'vitest';
import type { Driver } from '../../src/store/driver.ts';
import { PostgresDriver } from '../../src/store/drivers/postgres/driver.ts';
import { SqliteDriver } from '../../src/store/drivers/sqlite/driver.ts';
import { systemClock } from '../../src/system/system.ts';
import { freshDatabase } from '../support/postgres/shared.ts';

const DRIVERS: Record<string, () => Promise<Driver>> = {
  SQLite: async () => new SqliteDriver({ path: ':memory:' }),
  PostgreSQL: async () =>
    new PostgresDriver({
      url: await freshDatabase(),
      connectionsMax: 1,
      timeoutMs: 5_000,
      prepares: true,
      clock: systemClock,
    }),
};

describe.each(Object.entries(DRIVERS))('asked of %s', (_, open) => {
  it('returns the rows for each value separately, in order and up to its limit', async () => {
    const driver = await open();
    const results = await driver.transaction(async (tx) => {
      await tx.run('create table rows (line text, key bigint)', []);
      const rows = [
        ['a', 3],
        ['a', 1],
        ['a', 2],
        ["b'$1", 4],
      ];
      await tx.insertMany('rows', ['line', 'key'], rows);
      return tx.queryEach<{ key: number }>('select key from rows where line = ? and key > ? order by key limit ?', [
        ['a', 0, 2],
        ['nobody', 0, 9],
        ["b'$1", 0, 9],
        ['a', 2, 9],
      ]);
    });
    expect(results.map((rows) => rows.map(({ key }) => key))).toEqual([[1, 2], [], [4], [3]]);
    await driver.close();
  });

  it('returns nothing for no values', async () => {
    const driver = await open();
    expect(await driver.transaction((tx) => tx.queryEach('select 1 as one where 1 = ?', []))).toEqual([]);
    await driver.close();
  });
});
