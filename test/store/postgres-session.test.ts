/** What a transaction asks of the server's session, whatever the operator has set for others (P1). */
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Queries } from '../../src/store/driver.ts';
import { PostgresDriver } from '../../src/store/drivers/postgres/driver.ts';
import { systemClock } from '../../src/system/system.ts';
import { freshDatabase } from '../support/postgres/shared.ts';

let client: pg.Client;
let driver: PostgresDriver;

beforeEach(async () => {
  const url = await freshDatabase();
  client = new pg.Client({ connectionString: url });
  await client.connect();
  driver = new PostgresDriver({ url, connectionsMax: 2, timeoutMs: 5_000, prepares: true, clock: systemClock });
});
afterEach(async () => {
  await driver.close();
  await client.end();
});

describe('a commit', () => {
  it.each([
    ['off', 'on'],
    ['local', 'local'],
    ['remote_write', 'remote_write'],
    ['on', 'on'],
    ['remote_apply', 'remote_apply'],
  ])('is waited for as long as the operator says, and to the disk at least: %s is %s', async (set, inForce) => {
    const { rows } = await client.query<{ name: string }>('select current_database() as name');
    await client.query(`alter database "${rows[0]?.name}" set synchronous_commit = ${set}`);
    const [row] = await driver.transaction((tx) => tx.query("select current_setting('synchronous_commit') as setting"));
    expect(row).toEqual({ setting: inForce });
  });
});

it('the server ends a transaction of a program that asks nothing, or takes no answers, for the time of a statement', async () => {
  const inForce = {
    statement_timeout: '4500ms',
    idle_in_transaction_session_timeout: '4500ms',
    tcp_user_timeout: '4500', // as the system says
  };
  const settings = Object.keys(inForce).map((name) => `current_setting('${name}') as ${name}`);
  const ask = (queries: Queries) => queries.query(`select ${settings.join(', ')}`);
  expect(await Promise.all([driver.transaction(ask), driver.read(ask)])).toEqual([[inForce], [inForce]]);
});

it('a read sees one moment, whatever is committed while it goes on', async () => {
  await client.query('create table counted (n bigint); insert into counted values (1)');
  const count = 'select count(*) as count from counted';
  const seen = await driver.read(async (queries) => {
    const before = await queries.query(count);
    await client.query('insert into counted values (2)');
    return [before, await queries.query(count)];
  });
  expect(seen).toEqual([[{ count: 1 }], [{ count: 1 }]]);
});

it('a transaction of several statements sees what others have committed before each', async () => {
  await client.query('create table counted (n bigint); insert into counted values (1)');
  const count = 'select count(*) as count from counted';
  const seen = await driver.transaction(async (tx) => {
    const before = await tx.query(count);
    await client.query('insert into counted values (2)');
    return [before, await tx.query(count)];
  });
  expect(seen).toEqual([[{ count: 1 }], [{ count: 2 }]]);
});
