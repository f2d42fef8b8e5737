/** The statements that `npm run sql` prints are plain SQL for PostgreSQL, and contain those of all operations. */
import pg from 'pg';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { OPERATIONS } from '../../src/store/operations/all.ts';
import { migratedDatabase } from '../support/postgres/shared.ts';
import { statementsByOperation } from './statements.ts';

let found: ReadonlyMap<string, ReadonlySet<string>>;
let client: pg.Client;
beforeAll(async () => {
  found = await statementsByOperation();
  client = new pg.Client({ connectionString: await migratedDatabase() });
  await client.connect();
});
afterAll(() => client.end());

it('contain those of every operation', () => {
  const operations = Object.values(OPERATIONS).flatMap((files) =>
    Object.entries(files).flatMap(([name, value]) => (typeof value === 'function' && 'kind' in value ? [name] : [])),
  );
  expect(operations.length).toBeGreaterThan(100);
  expect(operations.filter((name) => !found.has(name))).toEqual([]);
});

it('PostgreSQL plans each of them', async () => {
  for (const statements of found.values()) {
    for (const statement of statements) await client.query(`explain ${statement}`);
  }
});
