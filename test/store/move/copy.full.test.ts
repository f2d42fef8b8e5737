/** A store that moves to another database and back is unchanged, even if the move is interrupted. */
import { afterEach, describe, expect, it } from 'vitest';
import type { Driver, SqlValue, Transaction } from '../../../src/store/driver.ts';
import { PostgresDriver } from '../../../src/store/drivers/postgres/driver.ts';
import { LogPartitions } from '../../../src/store/drivers/postgres/log-partitions.ts';
import { SqliteDriver } from '../../../src/store/drivers/sqlite/driver.ts';
import { MIGRATIONS, MoveUnfinished, migrate } from '../../../src/store/migrations/index.ts';
import { type CopyOptions, copyStore } from '../../../src/store/move/copy.ts';
import { MoveRefused } from '../../../src/store/move/progress.ts';
import { MOVED_TABLES } from '../../../src/store/move/tables.ts';
import { checkInvariants } from '../../../src/store/operations/reports/invariants.ts';
import { systemClock } from '../../../src/system/system.ts';
import { makeHostile } from '../../support/postgres/hostile.ts';
import { freshDatabase } from '../../support/postgres/shared.ts';
import { SeededRandom } from '../../support/seeded-random.ts';
import { fillRandomly, playWorkflows } from './filled.ts';

const opened: Driver[] = [];
afterEach(async () => {
  for (const driver of opened.splice(0)) await driver.close();
});

function keep<D extends Driver>(driver: D): D {
  opened.push(driver);
  return driver;
}

const KINDS: Record<string, () => Promise<Driver>> = {
  SQLite: async () => keep(new SqliteDriver({ path: ':memory:' })),
  PostgreSQL: async () => postgresAt(await freshDatabase()),
  'PostgreSQL with hostile defaults': async () => postgresAt(await makeHostile(await freshDatabase())),
};

function postgresAt(url: string): PostgresDriver {
  return keep(new PostgresDriver({ url, connectionsMax: 3, timeoutMs: 10_000, prepares: true, clock: systemClock }));
}

const openSqlite = KINDS['SQLite'] as () => Promise<Driver>;

/** So small that every table needs several. */
const SMALL_PIECES: CopyOptions = { limits: { rowsMax: 7, bytesMax: 30_000 } };

/** All rows of all tables as texts, in an order that does not depend on the database. */
async function rowsOf(driver: Driver): Promise<Record<string, string[]>> {
  const all: Record<string, string[]> = {};
  for (const { name, columns } of MOVED_TABLES) {
    const rows = await driver.read((queries) =>
      queries.query<Record<string, SqlValue>>(`select ${columns.join(', ')} from ${name}`),
    );
    all[name] = rows.map((row) => JSON.stringify(columns.map((column) => plain(row[column])))).toSorted();
  }
  return all;
}

function plain(value: SqlValue | undefined): SqlValue | undefined {
  return value instanceof Uint8Array ? `bytes ${Buffer.from(value).toString('base64')}` : value;
}

async function filled(seed: number, rows = 20): Promise<Driver> {
  const driver = await openSqlite();
  await migrate(driver);
  await fillRandomly(driver, new SeededRandom(seed), rows);
  return driver;
}

describe.each(Object.keys(KINDS))('a move to %s', (kind) => {
  const open = KINDS[kind] as () => Promise<Driver>;

  it('and back keeps every row of every table, to the last byte', async () => {
    const first = await filled(1, 30);
    const wanted = await rowsOf(first);
    const second = await open();
    const third = await openSqlite();
    const there = await copyStore(first, second, SMALL_PIECES);
    expect(await rowsOf(second)).toEqual(wanted);
    const back = await copyStore(second, third, SMALL_PIECES);
    expect(await rowsOf(third)).toEqual(wanted);
    expect(back).toEqual(there);
    expect(there.map(({ table }) => table)).toEqual(MOVED_TABLES.map(({ name }) => name));
    expect(there.find(({ table }) => table === 'contents')?.rows).toBe(30);
  });

  it('of a store with workflows leaves it sound', async () => {
    const source = keep(await playWorkflows(5, 150));
    const target = await open();
    const copied = await copyStore(source, target);
    const empty = copied.filter(({ rows }) => rows === 0).map(({ table }) => table);
    expect(copied.length - empty.length).toBeGreaterThan(10);
    expect(await rowsOf(target)).toEqual(await rowsOf(source));
    const findings = await target.read(checkInvariants);
    expect(findings.filter(({ offenders }) => offenders.length > 0)).toEqual([]);
  });

  it('continues where it was killed, before or after any commit', async () => {
    const source = await filled(2);
    const wanted = await rowsOf(source);
    const random = new SeededRandom(2);
    const target = await open();
    let kills = 0;
    for (;;) {
      const moment = random.choose(['before', 'after'] as const);
      const dying = dieAfter(target, random.int(1, 12), moment);
      try {
        await copyStore(source, dying, SMALL_PIECES);
        break;
      } catch (error) {
        expect(error).toBeInstanceOf(Killed);
        kills += 1;
        const refusal: unknown = await migrate(target).catch((reason: unknown) => reason);
        if (refusal === undefined && moment === 'after') break; // it was the last commit
        expect(refusal).toBeInstanceOf(MoveUnfinished);
      }
    }
    expect(kills).toBeGreaterThan(5);
    expect(await rowsOf(target)).toEqual(wanted);
    await migrate(target);
  });

  it('finds a byte that changed on the way, keeps servers out, and copies that table again', async () => {
    const source = await filled(3);
    const target = await open();
    const flipped = changeInserts(target, 'contents', (rows, columns) => {
      const body = rows.map((row) => row[columns.indexOf('body')]).find((value) => value instanceof Uint8Array);
      if (body) body[0] = (body[0] ?? 0) ^ 1;
    });
    const moving = copyStore(source, flipped, SMALL_PIECES);
    await expect(moving).rejects.toThrow('not copied correctly: contents; run the command again');
    await expect(migrate(target)).rejects.toThrow('the database is the target of a move that is not complete');
    await copyStore(source, target, SMALL_PIECES);
    expect(await rowsOf(target)).toEqual(await rowsOf(source));
  });

  it('finds a lost row and a duplicated one', async () => {
    for (const change of [
      (rows: SqlValue[][]) => rows.pop(),
      (rows: SqlValue[][]) => rows.push(rows[0]?.with(0, 77) ?? []),
    ]) {
      const source = await filled(4);
      const target = changeInserts(await open(), 'log_details', change);
      await expect(copyStore(source, target)).rejects.toThrow('not copied correctly: log_details');
    }
  });

  it('refuses a target that has data, unless it is to be replaced', async () => {
    const source = await filled(5);
    const target = await open();
    await migrate(target);
    await fillRandomly(target, new SeededRandom(6), 5);
    const before = await rowsOf(target);
    await expect(copyStore(source, target)).rejects.toThrow(/^the target is not empty \(projects\); --overwrite/);
    expect(await rowsOf(target)).toEqual(before);
    await copyStore(source, target, { overwrite: true });
    expect(await rowsOf(target)).toEqual(await rowsOf(source));
  });

  it('refuses to mix two stores, or a store with a later state of itself', async () => {
    const source = await filled(7);
    const other = await filled(8);
    const target = await open();
    await expect(copyStore(source, dieAfter(target, 5, 'after'), SMALL_PIECES)).rejects.toThrow(Killed);
    await expect(copyStore(other, target)).rejects.toThrow('the target has a part of another store');
    await source.transaction((tx) => tx.run("update numbers set next = next + 1 where name = 'queues'"));
    await expect(copyStore(source, target)).rejects.toThrow('--overwrite starts again');
    await copyStore(source, target, { overwrite: true });
    expect(await rowsOf(target)).toEqual(await rowsOf(source));
  });

  it('finds that the source was used during the move', async () => {
    const source = await filled(9);
    const target = await open();
    const moving = copyStore(source, target, {
      onProgress: ({ table }) => {
        if (table !== 'contents') return;
        void source.transaction((tx) => tx.run("update numbers set next = next + 1 where name = 'log entries'"));
      },
    });
    await expect(moving).rejects.toThrow(MoveRefused);
    await expect(migrate(target)).rejects.toThrow(MoveUnfinished);
  });

  it('refuses a source or target that another version has changed', async () => {
    const source = await filled(10);
    const target = await open();
    const later = { number: 9_999, name: 'later', breaking: false, statements: () => [] };
    await migrate(target, [...MIGRATIONS, later]);
    await expect(copyStore(source, target)).rejects.toThrow('the target was changed by a newer Waypost');
    await expect(copyStore(target, source)).rejects.toThrow('the source was changed by a newer Waypost');
    const early = await open();
    await migrate(early, MIGRATIONS.slice(0, -1));
    await expect(copyStore(early, await open())).rejects.toThrow('the source was last used by an older Waypost');
  });
});

it('puts copied logs into the tables of their days on PostgreSQL', async () => {
  const target = await (KINDS['PostgreSQL'] as () => Promise<Driver>)();
  await copyStore(await filled(5), target, { prepareLogs: (logs) => new LogPartitions(target).createFor(logs) });
  const tables = await target.read((queries) =>
    queries.query<{ name: string }>('select distinct cast(cast(tableoid as regclass) as text) as name from logs'),
  );
  expect(tables.length).toBeGreaterThan(3);
  for (const { name } of tables) expect(name).toMatch(/^logs_2027\d{4}$/);
});

it('reads bodies in chunks of bounded size, and a larger one alone', async () => {
  const source = await openSqlite();
  await migrate(source);
  const sizes = [10, 10, 50_000, 29_000, 10, 10, 10, 10, 10];
  await source.transaction(async (tx) => {
    const rows = sizes.map((size, index) => [index + 1, 1, 1, 'event', new Uint8Array(size).fill(index)]);
    await tx.insertMany('pending_events', ['key', 'project_id', 'run_key', 'event_id', 'body'], rows);
  });
  const progress: number[] = [];
  const target = await openSqlite();
  await copyStore(source, target, {
    limits: { rowsMax: 4, bytesMax: 30_000 },
    onProgress: ({ table, rows }) => {
      if (table === 'pending_events') progress.push(rows);
    },
  });
  expect(progress).toEqual([2, 3, 7, 9]);
});

class Killed extends Error {}

/** `target` until it has started or committed `count` transactions, like a killed process. */
function dieAfter(target: Driver, count: number, moment: 'before' | 'after'): Driver {
  let left = count;
  return {
    dialect: target.dialect,
    read: (work) => target.read(work),
    close: () => target.close(),
    transaction: async (work) => {
      left -= 1;
      if (left <= 0 && moment === 'before') throw new Killed();
      const result = await target.transaction(work);
      if (left <= 0) throw new Killed();
      return result;
    },
  };
}

/** `target` with `change` applied to the rows of one insert into `table`. */
function changeInserts(
  target: Driver,
  table: string,
  change: (rows: SqlValue[][], columns: readonly string[]) => void,
): Driver {
  let isDone = false;
  const changed = (tx: Transaction): Transaction => ({
    ...tx,
    query: (text, params) => tx.query(text, params),
    reserve: (sequence, count) => tx.reserve(sequence, count),
    run: (text, params) => tx.run(text, params),
    updateMany: (...args) => tx.updateMany(...args),
    insertMany: (name, columns, rows) => {
      if (name !== table || isDone) return tx.insertMany(name, columns, rows);
      isDone = true;
      const copies = rows.map((row) => row.map((value) => (value instanceof Uint8Array ? value.slice() : value)));
      change(copies, columns);
      return tx.insertMany(name, columns, copies);
    },
  });
  return {
    dialect: target.dialect,
    read: (work) => target.read(work),
    close: () => target.close(),
    transaction: (work) => target.transaction((tx) => work(changed(tx))),
  };
}
