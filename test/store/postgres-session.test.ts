/**
 * The settings that a transaction requests from the session of the server, whatever the operator has set for others
 * (P1).
 */
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import type { Queries } from '../../src/store/driver.ts';
import { ConnectionPool } from '../../src/store/drivers/postgres/connections/pool.ts';
import { PostgresDriver } from '../../src/store/drivers/postgres/driver.ts';
import { openPostgresStore } from '../../src/store/drivers/postgres/open.ts';
import { systemClock } from '../../src/system/system.ts';
import { HOSTILE, makeHostile } from '../support/postgres/hostile.ts';
import { freshDatabase } from '../support/postgres/shared.ts';

let url: string;
let client: pg.Client;
let driver: PostgresDriver;

beforeEach(async () => {
  url = await freshDatabase();
  client = new pg.Client({ connectionString: url });
  await client.connect();
  driver = driverAt(url);
});
afterEach(async () => {
  await driver.close();
  await client.end();
});

function driverAt(at: string): PostgresDriver {
  return new PostgresDriver({ url: at, connectionsMax: 2, timeoutMs: 5_000, prepares: true, clock: systemClock });
}

describe('a commit', () => {
  it.each([
    ['off', 'on'],
    ['local', 'local'],
    ['remote_write', 'remote_write'],
    ['on', 'on'],
    ['remote_apply', 'remote_apply'],
  ])('is awaited as the operator has set, but at least to the disk: %s is %s', async (set, inForce) => {
    const { rows } = await client.query<{ name: string }>('select current_database() as name');
    await client.query(`alter database "${rows[0]?.name}" set synchronous_commit = ${set}`);
    const [row] = await driver.transaction((tx) => tx.query("select current_setting('synchronous_commit') as setting"));
    expect(row).toEqual({ setting: inForce });
  });
});

it('a transaction has none of the defaults that would change its reads, nor does a read', async () => {
  await makeHostile(url);
  const inForce = {
    bytea_output: 'hex',
    datestyle: 'ISO, MDY',
    intervalstyle: 'postgres',
    timezone: 'UTC',
    extra_float_digits: '1',
    standard_conforming_strings: 'on',
    client_encoding: 'UTF8',
    client_min_messages: 'warning',
    quote_all_identifiers: 'off',
    search_path: '"decoys"', // no other schema has a store
    synchronous_commit: 'on',
    statement_timeout: '4500ms',
    lock_timeout: '0',
    idle_in_transaction_session_timeout: '4500ms',
    transaction_timeout: '0',
  };
  const settings = Object.keys(inForce).map((name) => `current_setting('${name}') as ${name}`);
  const ask = async (queries: Queries) => (await queries.query(`select ${settings.join(', ')}`))[0];
  expect(await driver.transaction(ask)).toEqual(inForce);
  const { synchronous_commit: _, ...read } = inForce; // a read commits nothing
  expect(await driver.read(ask)).toEqual({ ...read, synchronous_commit: 'off' });
  const isolation = (queries: Queries) => queries.query("select current_setting('transaction_isolation') as isolation");
  expect(await driver.transaction(isolation)).toEqual([{ isolation: 'read committed' }]);
  // The three settings that only the start sets.
  const pinned = [...Object.keys(inForce), 'default_transaction_isolation', 'default_transaction_deferrable'];
  expect(Object.keys(HOSTILE).map((name) => name.toLowerCase())).toEqual(expect.arrayContaining(pinned));
  expect(pinned).toHaveLength(Object.keys(HOSTILE).length);
});

it('a database whose encoding lacks characters is refused', async () => {
  await client.query("create database latin encoding 'LATIN1' template template0 locale 'C'");
  const at = new URL(url);
  at.pathname = '/latin';
  const opening = openPostgresStore({
    url: at.href,
    listenUrl: '',
    clock: systemClock,
    sender: 'w',
    onFatal: () => {},
  });
  await expect(opening).rejects.toThrow('the encoding of the database is LATIN1: UTF8 is needed');
});

describe('the tables', () => {
  const where = (at: PostgresDriver) => at.read((queries) => queries.query('select current_schema() as schema'));
  const setPath = (path: string) =>
    client.query(`alter database "${new URL(url).pathname.slice(1)}" set search_path = ${path}`);

  it.each([
    ['the first schema of the search path', 'made, public', 'made'],
    ['the default schema where the path leads nowhere', 'nowhere', 'public'],
    ['the default schema where the path is empty', "''", 'public'],
    ['the default schema where the path begins with the catalog', 'pg_catalog, made', 'public'],
  ])('of a new store are in %s', async (_, path, schema) => {
    await client.query('create schema made');
    await setPath(path);
    expect(await where(driver)).toEqual([{ schema }]);
  });

  it('of a store in the default schema are found when another search path is set later', async () => {
    await client.query('create table migrations (number bigint); create schema made');
    await setPath('made, public');
    expect(await where(driver)).toEqual([{ schema: 'public' }]);
  });

  it('are not searched where another program has told a session of a pooler to', async () => {
    await client.query('create schema made');
    const [session] = await driver.read((queries) => queries.query<{ pid: number }>('select pg_backend_pid() as pid'));
    expect(session).toBeDefined();
    const pool = new ConnectionPool({ url, connectionsMax: 1, timeoutMs: 5_000, clock: systemClock }).join(client);
    const other = await pool.take(client);
    await other.query('set search_path = made; set bytea_output = escape');
    other.release();
    const context = { url, connectionsMax: 1, timeoutMs: 5_000, prepares: true, clock: systemClock };
    const behind = new PostgresDriver(context, pool);
    expect(await where(behind)).toEqual([{ schema: 'public' }]);
    await behind.close();
    await pool.leave(client);
  });
});

describe('a value that the server returns in another form than it was sent', () => {
  it.each([
    ['bytes', "set local bytea_output = 'escape'", 'select \'{"a":1}\'::bytea as value'],
    ['a number beyond those that are exact', 'select 1', 'select 9007199254740993::bigint as value'],
    ['no number', 'select 1', "select 'NaN'::numeric as value"],
    ['a type that the store does not have', 'select 1', 'select now() as value'],
  ])('is refused rather than guessed, and the database counts as unavailable: %s', async (_, before, text) => {
    const reading = driver.transaction(async (tx) => {
      await tx.run(before);
      return tx.query(text);
    });
    await expect(reading).rejects.toThrow(StoreUnavailable);
    await expect(reading).rejects.toThrow('the database wrote');
    expect(await driver.transaction((tx) => tx.query("select '\\x00ff'::bytea as value"))).toEqual([
      { value: new Uint8Array([0, 255]) },
    ]);
  });
});

it('the server ends a transaction of a program that sends nothing, or reads no responses, for the time of a statement', async () => {
  const inForce = {
    statement_timeout: '4500ms',
    idle_in_transaction_session_timeout: '4500ms',
    tcp_user_timeout: '4500', // as the system reports it
  };
  const settings = Object.keys(inForce).map((name) => `current_setting('${name}') as ${name}`);
  const ask = (queries: Queries) => queries.query(`select ${settings.join(', ')}`);
  expect(await Promise.all([driver.transaction(ask), driver.read(ask)])).toEqual([[inForce], [inForce]]);
});

it('a read sees one moment, whatever is committed while it runs', async () => {
  await client.query('create table counted (n bigint); insert into counted values (1)');
  const count = 'select count(*) as count from counted';
  const seen = await driver.read(async (queries) => {
    const before = await queries.query(count);
    await client.query('insert into counted values (2)');
    return [before, await queries.query(count)];
  });
  expect(seen).toEqual([[{ count: 1 }], [{ count: 1 }]]);
});

it('a transaction of several statements sees the commits of others before each', async () => {
  await client.query('create table counted (n bigint); insert into counted values (1)');
  const count = 'select count(*) as count from counted';
  const seen = await driver.transaction(async (tx) => {
    const before = await tx.query(count);
    await client.query('insert into counted values (2)');
    return [before, await tx.query(count)];
  });
  expect(seen).toEqual([[{ count: 1 }], [{ count: 2 }]]);
});
