import pg from 'pg';
import { expect, it } from 'vitest';
import { openPostgresStore } from '../../src/store/drivers/postgres/open.ts';
import { systemClock } from '../../src/system/system.ts';
import { eventually } from '../support/eventually.ts';
import { freshDatabase, migratedDatabase } from '../support/postgres/shared.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

const NEWER = 900;

async function execute(url: string, text: string, values: unknown[] = []): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(text, values);
  await client.end();
}

const noteMigration = (url: string, breaking: boolean) =>
  execute(url, 'insert into migrations (number, name, breaking) values ($1, $2, $3)', [
    NEWER,
    'something new',
    breaking ? 1 : 0,
  ]);

it('is used by a worker that meets a newer compatible schema', async () => {
  const url = await freshDatabase();
  const open = () => openPostgresStore({ url, listenUrl: '', clock: systemClock, sender: 'one', onFatal: () => {} });
  const store = await open();
  await noteMigration(url, false);
  expect(
    await store.workers.heartbeat({ worker: 'one', timeoutMs: 1_000, isLeaving: false, accountsVersion: 1 }),
  ).toMatchObject({
    wasKnown: false,
  });
  const second = await open();
  await second.close();
  await store.close();
});

it('is given up by a worker when a newer program makes its schema incompatible, and opened by no other worker like it', async () => {
  const url = await freshDatabase();
  const fatal: Error[] = [];
  const onFatal = (error: Error) => fatal.push(error);
  const open = () => openPostgresStore({ url, listenUrl: '', clock: systemClock, sender: 'one', onFatal });
  const store = await open();
  await noteMigration(url, true);
  await expect(
    store.workers.heartbeat({ worker: 'one', timeoutMs: 1_000, isLeaving: false, accountsVersion: 1 }),
  ).rejects.toMatchObject({
    name: 'StoreUnavailable',
  });
  expect(fatal.map(({ message }) => message)).toEqual([
    'the database was changed by a newer Waypost (migration "something new"); start that version or a later one',
  ]);
  await expect(store.messages.reserveNumbers({ count: 1 })).rejects.toMatchObject({ name: 'StoreUnavailable' });
  await expect(open()).rejects.toMatchObject({ name: 'SchemaTooNew' });
  await store.close();
});

it('is left unchanged, and opened by no worker, if no release has created it', async () => {
  const url = await freshDatabase();
  await execute(
    url,
    `create table migrations (number integer primary key, name text not null, breaking integer not null);
     insert into migrations values (1, 'messages', 1), (2, 'url groups', 0), (3, 'lanes', 1)`,
  );
  const opening = openPostgresStore({ url, listenUrl: '', clock: systemClock, sender: 'one', onFatal: () => {} });
  await expect(opening).rejects.toMatchObject({ name: 'SchemaUnreleased' });
  await expect(opening).rejects.toThrow(/^the database was made before Waypost 0\.1\.0/);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query("select tablename from pg_tables where schemaname = 'public'");
  await client.end();
  expect(rows).toEqual([{ tablename: 'migrations' }]);
});

it('is migrated once by workers that start together', async () => {
  const url = await freshDatabase();
  const open = (sender: string) =>
    openPostgresStore({ url, listenUrl: '', clock: systemClock, sender, onFatal: () => {} });
  const stores = await Promise.all(['a', 'b', 'c', 'd'].map(open));
  expect(await Promise.all(stores.map((store) => store.messages.reserveNumbers({ count: 1 })))).toHaveLength(4);
  for (const store of stores) await store.close();
});

it('is opened without waiting for others while nothing is to be migrated', async () => {
  const url = await migratedDatabase();
  const other = new pg.Client({ connectionString: url });
  await other.connect();
  await other.query('begin');
  await other.query('select pg_advisory_xact_lock(8732155911)');
  let isOpen = false;
  const opening = openPostgresStore({ url, listenUrl: '', clock: systemClock, sender: 'one', onFatal: () => {} });
  void opening.then(() => {
    isOpen = true;
  });
  await eventually(
    'the worker to be there, or to wait',
    async () => isOpen || (await isAdvisoryLock(url, 'waited for')),
  );
  expect(isOpen).toBe(true);
  await other.end();
  await (await opening).close();
});

it('is migrated by another worker while the first one hangs, which opens it when it continues', async () => {
  const url = await freshDatabase();
  const before = new pg.Client({ connectionString: url });
  await before.connect();
  await before.query('begin');
  await before.query('create table migrations (number integer)'); // the worker waits for the end of this
  const proxy = await TcpProxy.open(Number(new URL(url).port));
  const open = (through: string, sender: string) =>
    openPostgresStore({ url: through, listenUrl: '', clock: systemClock, sender, onFatal: () => {} });
  const hanging = open(proxy.through(url), 'hanging');
  await eventually('the worker to have begun', () => isAdvisoryLock(url, 'had'));
  proxy.stall();
  await before.end();
  const store = await open(url, 'healthy');
  expect(await store.messages.reserveNumbers({ count: 1 })).toBeGreaterThan(0);
  proxy.flow();
  await (await hanging).close();
  await store.close();
  await proxy.close();
});

/** Keeps the connection of another client. */
async function isAdvisoryLock(url: string, state: 'had' | 'waited for'): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rowCount } = await client.query(
    `select 1 from pg_locks join pg_database d on d.oid = database
     where locktype = 'advisory' and granted = $1 and datname = current_database()`,
    [state === 'had'],
  );
  await client.end();
  return rowCount === 1;
}
