/** The embedded store: the common specification over its threads, and cases that only a file has. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import { createStore } from '../../src/store/create.ts';
import { SqliteDriver, walBytes } from '../../src/store/drivers/sqlite/driver.ts';
import { lockFile, StoreInUse } from '../../src/store/drivers/sqlite/lock.ts';
import { openInlineSqliteStore, openSqliteStore, type SqliteStore } from '../../src/store/drivers/sqlite/open.ts';
import { MIGRATIONS, migrate, SchemaTooNew } from '../../src/store/migrations/index.ts';
import type { Migration } from '../../src/store/migrations/migration.ts';
import { storeConformance } from './conformance/index.ts';
import { delivered, type OpenStore, PROJECT, settlement, T0, World } from './conformance/world.ts';

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function newPath(): string {
  const folder = mkdtempSync(join(tmpdir(), 'waypost-store-'));
  folders.push(folder);
  return join(folder, 'waypost.db');
}

/**
 * Starting threads takes a fifth of a second, so one store serves all cases of a suite, emptied when a case closes
 * it. What it remembers between them are only numbers that nobody may get again. Cases with limits have their own, in this
 * thread: limits are the same in another.
 */
function openShared(): OpenStore {
  const folder = mkdtempSync(join(tmpdir(), 'waypost-store-'));
  const path = join(folder, 'waypost.db');
  let shared: SqliteStore | undefined;
  let cleaner: DatabaseSync | undefined;
  afterAll(async () => {
    cleaner?.close();
    await shared?.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return async (limits) => {
    if (limits) return openInlineSqliteStore({ path: ':memory:', onFatal, limits });
    shared ??= await openSqliteStore({ path, onFatal });
    return new Proxy(shared, {
      get: (store, name) => {
        if (name === 'close') {
          return async () => {
            cleaner ??= new DatabaseSync(path, { timeout: 30_000 });
            empty(cleaner);
          };
        }
        const member: unknown = Reflect.get(store, name);
        return typeof member === 'function' ? member.bind(store) : member;
      },
    });
  };
}

function empty(db: DatabaseSync): void {
  const tables = db.prepare("select name from sqlite_schema where type = 'table'").all() as { name: string }[];
  const deletes = tables.filter(({ name }) => name !== 'numbers' && name !== 'migrations');
  // Not synchronised: no case looks at what a crash would leave. Immediate: a transaction that begins by reading can't
  // wait for the store's thread, and one that fails half way would stay open for all cases that follow.
  db.exec(
    `pragma synchronous = off; begin immediate; ${deletes.map(({ name }) => `delete from ${name};`).join(' ')} commit`,
  );
}

const onFatal = (error: Error) => {
  throw error;
};

storeConformance('threaded SQLite in a file', openShared());

describe('threaded SQLite in memory', () => {
  it('reads on the connection that writes', async () => {
    const world = await World.open(() => openSqliteStore({ path: ':memory:', onFatal }));
    const message = await world.accept();
    expect(await world.find(message)).toEqual(message);
    await world.store.close();
  });
});

describe('the thread that reads lists', () => {
  const page = { count: 10, order: 'latestFirst' } as const;
  const hide = (path: string) => renameSync(path, `${path}.hidden`);
  const showAgain = (path: string) => renameSync(`${path}.hidden`, path);

  it('is restarted by the next list after it could not start', async () => {
    const path = newPath();
    const world = await World.open(() => openSqliteStore({ path, onFatal }));
    const { message } = await world.acceptClaimed();
    const list = () => world.store.logs.listLogs({ projectId: PROJECT, filter: {}, page });
    hide(path);
    const lists = await Promise.allSettled([list(), list()]);
    expect(lists).toMatchObject(new Array(2).fill({ status: 'rejected', reason: { name: 'StoreUnavailable' } }));
    showAgain(path);
    expect((await list()).items.at(-1)?.message.id).toBe(message.id);
    await world.store.close();
  });

  it('does not keep a store from closing when it could not start', async () => {
    const path = newPath();
    const store = await openSqliteStore({ path, onFatal });
    hide(path);
    const listing = store.logs.listLogs({ projectId: PROJECT, filter: {}, page });
    await Promise.all([expect(listing).rejects.toThrow(StoreUnavailable), store.close()]);
    showAgain(path);
    const next = await openSqliteStore({ path, onFatal }); // the lock on the file is free
    await next.close();
  });
});

describe('durability', () => {
  it('runs with a write-ahead log and full synchronisation, read back from the connection (P1)', async () => {
    const driver = new SqliteDriver({ path: newPath() });
    expect(driver.pragma('journal_mode')).toBe('wal');
    expect(driver.pragma('synchronous')).toBe(2);
    expect(driver.pragma('wal_autocheckpoint')).toBe(0);
    await driver.close();
  });

  it('keeps acknowledged messages when the process ends without a close', async () => {
    const path = newPath();
    const first = await World.open(() => openInlineSqliteStore({ path, onFatal }));
    const { message: running } = await first.acceptClaimed();
    const waiting = await first.accept({ notBeforeMs: T0 + 5 });
    const done = await first.acceptClaimed();
    await first.store.messages.settle({
      settlement: settlement(done.message, done.claimToken, delivered()),
      nowMs: T0,
    });

    const second = await World.open(() => openInlineSqliteStore({ path, onFatal }));
    expect(second.number()).toBeGreaterThan(done.message.key);
    expect(await second.store.messages.releaseAll({ nowMs: T0 + 5 })).toBe(1);
    const { claimed } = await second.claim({}, T0 + 5);
    expect(claimed.map(({ message }) => message)).toEqual([running, waiting]);
    expect(await second.statesOf(done.message)).toEqual(['CREATED', 'ACTIVE', 'DELIVERED']);
    await second.store.close();
    await first.store.close();
  });

  it('is usable at once after its writer was killed while writing', async () => {
    const path = newPath();
    const script = new URL('./fixtures/write-for-ever.ts', import.meta.url).pathname;
    const child = spawn(process.execPath, [script, path], { stdio: ['ignore', 'pipe', 'inherit'] });
    let written = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      written += text;
      if (written.length > 20_000) child.kill('SIGKILL');
    });
    await once(child, 'close');
    const acknowledged = written.split('\n').slice(0, -1);
    expect(acknowledged.length).toBeGreaterThan(100);

    const store = await openSqliteStore({ path, onFatal });
    for (const id of [acknowledged[0], acknowledged[50], acknowledged.at(-1)]) {
      expect(await store.messages.find({ projectId: PROJECT, id: id ?? '', deliveredSinceMs: 0 })).toMatchObject({
        id,
      });
    }
    const page = await store.logs.listLogs({
      projectId: PROJECT,
      filter: {},
      page: { count: 1_000_000, order: 'latestFirst' },
    });
    const stored = new Set(page.items.map(({ message }) => message.id));
    expect(acknowledged.filter((id) => !stored.has(id))).toEqual([]);
    await store.close();
    const db = new DatabaseSync(path);
    expect(db.prepare('pragma integrity_check').get()).toEqual({ integrity_check: 'ok' });
    db.close();
  });

  it('keeps the write-ahead log small under a stream of writes', async () => {
    const path = newPath();
    const world = await World.open(() => openInlineSqliteStore({ path, onFatal }));
    const store = world.store as SqliteStore;
    let largest = 0;
    for (let round = 0; round < 60; round++) {
      await store.messages.accept({
        messages: Array.from({ length: 10 }, () => world.message({ body: new Uint8Array(60_000) })),
        nowMs: T0,
      });
      largest = Math.max(largest, store.stats().walBytes);
    }
    expect(store.stats().fileBytes).toBeGreaterThan(20_000_000);
    expect(largest).toBeLessThan(24_000_000);
    await store.close();
  });

  it('keeps it small when the written rows are far apart', async () => {
    const path = newPath();
    const driver = new SqliteDriver({ path });
    const pageOfItsOwn = new Uint8Array(3_000);
    await driver.transaction(async (tx) => {
      await tx.run('create table rows (key integer primary key, changes integer, pad blob)', []);
      await tx.insertMany(
        'rows',
        ['key', 'changes', 'pad'],
        Array.from({ length: 2_000 }, (_, key) => [key, 0, pageOfItsOwn]),
      );
    });
    let largest = 0;
    for (let round = 0; round < 250; round += 1) {
      const changed = Array.from({ length: 64 }, (_, nth) => [(round * 64 + nth) % 2_000, round]);
      await driver.transaction((tx) => tx.updateMany('rows', 'key', ['changes'], changed));
      driver.maintain();
      largest = Math.max(largest, walBytes(path));
    }
    expect(largest).toBeLessThan(36_000_000);
    await driver.close();
  });
});

describe('group commit', () => {
  it('puts commands that arrive during a commit into the next one, within its limit', async () => {
    const world = await World.open(() => openSqliteStore({ path: newPath(), onFatal, batch: { costMax: 50 } }));
    const store = world.store as SqliteStore;
    const before = store.stats();
    await Promise.all(
      Array.from({ length: 200 }, () => store.messages.accept({ messages: [world.message()], nowMs: T0 })),
    );
    const after = store.stats();
    expect(after.commands - before.commands).toBe(200);
    expect(after.batches - before.batches).toBe(4);
    await store.close();
  });

  it('counts the messages that follow from a settle, and their bodies', async () => {
    // 3 rows each, or as much as 5 rows: 20 of them fill two batches.
    for (const { bytes, costMax } of [
      { bytes: 1_000, costMax: 30 },
      { bytes: 100_000, costMax: 50 },
    ]) {
      const world = await World.open(() => openSqliteStore({ path: newPath(), onFatal, batch: { costMax } }));
      const store = world.store as SqliteStore;
      const claims = await Promise.all(Array.from({ length: 20 }, () => world.acceptClaimed()));
      const before = store.stats();
      await Promise.all(
        claims.map(({ message, claimToken }) => {
          const follows = [world.message({ body: new Uint8Array(bytes) }), world.message()];
          return store.messages.settle({
            settlement: settlement(message, claimToken, { ...delivered(), follows }),
            nowMs: T0,
          });
        }),
      );
      expect(store.stats().batches - before.batches).toBe(2);
      await store.close();
    }
  });

  it('finishes earlier commands before it closes, and refuses later ones', async () => {
    const path = newPath();
    const world = await World.open(() => openSqliteStore({ path, onFatal }));
    const message = world.message();
    const accepted = world.save([message]);
    await world.store.close();
    expect(await accepted).toMatchObject([{ kind: 'accepted' }]);
    await expect(world.save([world.message()])).rejects.toMatchObject({
      name: 'StoreUnavailable',
    });
    await expect(world.find(message.message)).rejects.toMatchObject({ name: 'StoreUnavailable' });
    const again = await openSqliteStore({ path, onFatal });
    expect(await again.messages.find({ projectId: PROJECT, id: message.message.id, deliveredSinceMs: 0 })).toEqual(
      message.message,
    );
    await again.close();
  });
});

describe('one server per file', () => {
  it('creates files that only their owner can read, whatever the folder allows', async () => {
    const path = newPath();
    chmodSync(dirname(path), 0o755);
    const store = await openSqliteStore({ path, onFatal });
    const modes = readdirSync(dirname(path)).map((name) => [name, statSync(join(dirname(path), name)).mode & 0o077]);
    await store.close();
    expect(modes.map(([name]) => name)).toEqual(
      expect.arrayContaining(['waypost.db', 'waypost.db-wal', 'waypost.db.lock']),
    );
    expect(modes.filter(([, forOthers]) => forOthers !== 0)).toEqual([]);
  });

  it('refuses a second one, naming the process that has it, and admits it after a close', async () => {
    const path = newPath();
    const first = await openSqliteStore({ path, onFatal });
    const second = openSqliteStore({ path, onFatal });
    await expect(second).rejects.toThrow(StoreInUse);
    await expect(second).rejects.toThrow(`process ${process.pid}, running since 2`);
    await first.ping();
    await first.close();
    const third = await openSqliteStore({ path, onFatal });
    await third.close();
    expect(existsSync(`${path}.owner`)).toBe(false);
  });

  it('never shows a partial lock file: a new owner replaces that of a killed one', async () => {
    const path = newPath();
    writeFileSync(`${path}.owner`, 'of a process that was killed');
    const readByAnother = openSync(`${path}.owner`, 'r');
    const lock = lockFile(path);
    expect(readFileSync(readByAnother, 'utf8')).toBe('of a process that was killed');
    expect(readFileSync(`${path}.owner`, 'utf8')).toBe(`${process.pid}\n`);
    closeSync(readByAnother);
    rmSync(`${path}.owner`);
    expect(() => lockFile(path)).toThrow('in use by another process');
    lock.release();
  });

  it('is released by a process that cannot write its lock file', () => {
    const path = newPath();
    mkdirSync(`${path}.owner.new`); // no file can be made there
    expect(() => lockFile(path)).toThrow('EISDIR');
    rmdirSync(`${path}.owner.new`);
    lockFile(path).release();
  });

  it('refuses a second process too, and has nothing to clean up after a kill', async () => {
    const path = newPath();
    const script = new URL('./fixtures/write-for-ever.ts', import.meta.url).pathname;
    const child = spawn(process.execPath, [script, path], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    await expect(openSqliteStore({ path, onFatal })).rejects.toThrow(`process ${child.pid}, running since`);
    child.kill('SIGKILL');
    await once(child, 'close');
    const store = await openSqliteStore({ path, onFatal });
    await store.close();
  });
});

describe('migrations', () => {
  const migration = (number: number, breaking: boolean): Migration => ({
    number,
    name: `step ${number}`,
    breaking,
    statements: () => [`create table step_${number} (id integer)`],
  });

  it('create the schema of schema.sql', async () => {
    const path = newPath();
    const driver = new SqliteDriver({ path });
    await migrate(driver);
    const rows = await driver.read((queries) =>
      queries.query<{ sql: string }>('select sql from sqlite_schema where sql is not null order by rowid'),
    );
    await driver.close();
    const schema = rows.map(({ sql }) => `${sql};\n`).join('\n');
    await expect(schema).toMatchFileSnapshot('./schema.sql');
  });

  it('are applied once each', async () => {
    const driver = new SqliteDriver({ path: newPath() });
    await migrate(driver, [migration(1, true)]);
    await migrate(driver, [migration(1, true), migration(2, false)]);
    await migrate(driver, [migration(1, true), migration(2, false)]);
    await driver.close();
  });

  it('let an older program use a newer schema unless it is incompatible', async () => {
    const driver = new SqliteDriver({ path: newPath() });
    await migrate(driver, [migration(1, true), migration(2, false)]);
    await expect(migrate(driver, [migration(1, true)])).resolves.toBeUndefined();
    await migrate(driver, [migration(1, true), migration(2, false), migration(3, true)]);
    await expect(migrate(driver, [migration(1, true)])).rejects.toThrow(SchemaTooNew);
    await driver.close();
  });

  it('refuse a store that no release has created, and leave it unchanged', async () => {
    const path = newPath();
    const before = new DatabaseSync(path);
    before.exec(
      `create table migrations (number integer primary key, name text not null, breaking integer not null);
       insert into migrations values (1, 'messages', 1), (2, 'url groups', 0), (3, 'lanes', 1);
       create table messages (key integer primary key)`,
    );
    const dump = () => before.prepare('select sql from sqlite_schema').all();
    const tables = dump();
    const opening = openSqliteStore({ path, onFatal });
    await expect(opening).rejects.toMatchObject({ name: 'SchemaUnreleased' });
    await expect(opening).rejects.toThrow(/^the database was made before Waypost 0\.1\.0/);
    expect(dump()).toEqual(tables);
    before.close();
  });

  it('refuse with the same words over a thread', async () => {
    const path = newPath();
    const driver = new SqliteDriver({ path });
    await migrate(driver, [...MIGRATIONS, migration(9_999, true)]);
    await driver.close();
    const opening = openSqliteStore({ path, onFatal });
    await expect(opening).rejects.toMatchObject({ name: 'SchemaTooNew' });
    await expect(opening).rejects.toThrow(/newer Waypost \(migration "step 9999"\)/);
  });
});

describe('a failing database', () => {
  it('is never written again, and is reported once', async () => {
    const path = newPath();
    const before = await World.open(() => openInlineSqliteStore({ path, onFatal }));
    await before.store.messages.accept({ messages: Array.from({ length: 500 }, () => before.message()), nowMs: T0 });
    await before.store.close();

    const fatal: Error[] = [];
    const world = await World.open(() => openInlineSqliteStore({ path, onFatal: (error) => fatal.push(error) }));
    overwriteAfter(path, 8 * 4096);
    const results = await Promise.allSettled([world.claim({ limit: 500 }), world.accept()]);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await expect(world.accept()).rejects.toMatchObject({ name: 'StoreUnavailable' });
    expect(fatal.map(({ name }) => name)).toEqual(['StoreFatal']);
    await world.store.close();
  });

  it('is refused at the start when the file is no database', async () => {
    const path = newPath();
    writeSync(openSync(path, 'w'), 'this is not a database, however long one looks at it'.repeat(100));
    await expect(openSqliteStore({ path, onFatal })).rejects.toMatchObject({ name: 'StoreFatal' });
  });

  it('returns StoreUnavailable while it is full, saves nothing, and continues when there is space again', async () => {
    const driver = new SqliteDriver({ path: newPath() });
    await migrate(driver);
    const world = await World.open(async () => createStore(driver));
    const kept = await world.accept();
    const setPagesMax = (pages: number) => driver.transaction((tx) => tx.query(`pragma max_page_count = ${pages}`));
    await setPagesMax(40);
    const newMessages = world.message({ body: new Uint8Array(300_000) });
    await expect(world.save([newMessages])).rejects.toMatchObject({
      name: 'StoreUnavailable',
    });
    expect(await world.find(newMessages.message)).toBeUndefined();
    await setPagesMax(1_000_000);
    expect(await world.save([newMessages])).toMatchObject([{ kind: 'accepted' }]);
    const { body, ...others } = newMessages.message;
    const found = await world.find(newMessages.message);
    expect(found).toMatchObject(others);
    expect(Buffer.compare(found?.body ?? new Uint8Array(0), body)).toBe(0); // a second, if vitest compares byte by byte
    expect(await world.statesOf(kept)).toEqual(['CREATED']);
    await world.store.close();
  });

  it('returns StoreUnavailable when another process has the write lock for too long', async () => {
    const path = newPath();
    const driver = new SqliteDriver({ path, busyTimeoutMs: 10 });
    await migrate(driver);
    const world = await World.open(async () => createStore(driver));
    const other = new DatabaseSync(path);
    other.exec('begin immediate');
    await expect(world.accept()).rejects.toMatchObject({ name: 'StoreUnavailable' });
    other.exec('rollback');
    other.close();
    expect(await world.accept()).toBeDefined();
    await world.store.close();
  });
});

/** Destroys the pages behind `offset`, as a failing disk would. */
function overwriteAfter(path: string, offset: number): void {
  const file = openSync(path, 'r+');
  writeSync(file, new Uint8Array(statSync(path).size - offset).fill(0xa5), 0, undefined, offset);
  closeSync(file);
}
