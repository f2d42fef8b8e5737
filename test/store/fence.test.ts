/** A cell saves nothing of a project that is not placed in it, and continues to work for all others. */

import { afterEach, describe, expect, it } from 'vitest';
import { backlogKey } from '../../src/engine/lanes/backlog-key.ts';
import type { ProjectId } from '../../src/engine/model.ts';
import type { Schedule } from '../../src/engine/schedules/schedules.ts';
import { ProjectAway } from '../../src/engine/store-errors.ts';
import type { StoreLimits } from '../../src/engine/stores.ts';
import { createStore } from '../../src/store/create.ts';
import type { Driver, Transaction } from '../../src/store/driver.ts';
import { PostgresDriver } from '../../src/store/drivers/postgres/driver.ts';
import { SqliteDriver } from '../../src/store/drivers/sqlite/driver.ts';
import { migrate } from '../../src/store/migrations/index.ts';
import type { Placement } from '../../src/store/operations/locking/placement.ts';
import { awaitBatches, setPlacement } from '../../src/store/operations/locking/placement.ts';
import type { Store } from '../../src/store/store.ts';
import { systemClock } from '../../src/system/system.ts';
import { eventually } from '../support/eventually.ts';
import { migratedDatabase } from '../support/postgres/shared.ts';
import { ending, NO_LIMITS, startRun, waiter } from './conformance/run-world.ts';
import { delivered, type MessageOptions, OTHER_PROJECT, PROJECT, settlement, T0, World } from './conformance/world.ts';

const IN_LANE: MessageOptions = { settings: { flowControl: { key: 'k', parallelism: 1, periodS: 1 } } };
const OF_OTHER: MessageOptions = { projectId: OTHER_PROJECT, url: 'https://other.example/' };

const opened: Driver[] = [];

afterEach(async () => {
  for (const driver of opened.splice(0)) await driver.close();
});

async function openSqlite(): Promise<Driver> {
  const driver = new SqliteDriver({ path: ':memory:' });
  await migrate(driver);
  opened.push(driver);
  return driver;
}

function openPostgres(url: string): Driver {
  const driver = new PostgresDriver({ url, connectionsMax: 4, timeoutMs: 10_000, prepares: true, clock: systemClock });
  opened.push(driver);
  return driver;
}

interface Cell {
  driver: Driver;
  store: Store;
  world: World;
}

async function cellOver(driver: Driver, { limits = NO_LIMITS, isGuarded = true } = {}): Promise<Cell> {
  const store = createStore(driver, { limits });
  for (const name of ['one', 'two'])
    await store.projects.ensureProject({ name, signingKeys: { current: 'c', next: 'n' }, nowMs: T0 });
  if (isGuarded) store.guardProjects();
  return { driver, store, world: await World.open(async () => store) };
}

function become({ driver }: Pick<Cell, 'driver'>, placement: Placement, projectId: ProjectId = PROJECT): Promise<void> {
  return driver.transaction((tx) => setPlacement(tx, projectId, placement));
}

const away = (isGone: boolean) =>
  expect.objectContaining({ name: 'ProjectAway', constructor: ProjectAway, projectId: PROJECT, isGone });

describe.each([
  ['SQLite', openSqlite],
  ['PostgreSQL', async () => openPostgres(await migratedDatabase())],
])('on %s, a cell', (_, open) => {
  it.each([
    ['arriving', false],
    ['leaving', false],
    ['gone', true],
    ['elsewhere', true],
  ] as const)('saves no message of a project that is %s, and returns that', async (placement, isGone) => {
    const cell = await cellOver(await open());
    await become(cell, placement);
    await expect(cell.world.accept()).rejects.toEqual(away(isGone));
    await expect(cell.world.accept(IN_LANE)).rejects.toEqual(away(isGone));
    await become(cell, 'here');
    expect((await cell.world.claim()).claimed).toEqual([]);
  });

  it('returns that a project is not here even when leftover rows conflict with the new ones', async () => {
    const cell = await cellOver(await open());
    await startRun(cell.world, { id: 'r' });
    await become(cell, 'gone');
    // A move deletes leftover rows in chunks.
    await cell.driver.transaction((tx) => tx.run('delete from contents', []));
    const again = startRun(cell.world, { id: 'r', createdAtMs: T0 + 1 });
    await expect(again).rejects.toEqual(away(true));
  });

  it('does not return that a run has ended whose project has left, once its leftover rows are deleted', async () => {
    const cell = await cellOver(await open());
    const run = await startRun(cell.world);
    const end = () => cell.store.runs.endRuns({ endings: [{ ending: ending(run), follows: [] }], nowMs: T0 });
    await become(cell, 'gone');
    await expect(end()).rejects.toEqual(away(true));
    await cell.driver.transaction((tx) => tx.run('delete from runs', []));
    await expect(end()).rejects.toEqual(away(true));
  });

  it('takes a project without a row to be in another cell', async () => {
    const { world } = await cellOver(await open());
    const unknown = 77;
    await expect(world.accept({ projectId: unknown })).rejects.toMatchObject({ projectId: unknown, isGone: true });
  });

  it('saves messages of other projects in the same transaction', async () => {
    const cell = await cellOver(await open());
    await become(cell, 'leaving');
    const results = await Promise.allSettled([cell.world.accept(), cell.world.accept(OF_OTHER), cell.world.accept()]);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'rejected']);
    expect((await cell.world.claim()).claimed).toHaveLength(1);
  });

  it('neither claims messages of a leaving project nor returns that they are due', async () => {
    const cell = await cellOver(await open());
    const { world, store } = cell;
    await world.accept();
    await world.accept(IN_LANE);
    const inBacklog = await world.accept({ url: 'https://busy.example/' });
    await world.claim({ capacityByOrigin: { 'https://busy.example': 0, 'https://example.com': 0 } });
    const other = await world.accept(OF_OTHER);
    await become(cell, 'leaving');
    const lines = ['https://example.com', inBacklog.origin].map((origin) => backlogKey(PROJECT, origin));
    const first = await world.claim({ backlogsToServe: lines });
    expect(first.claimed.map(({ message }) => message.key)).toEqual([other.key]);
    expect(first.emptied).toEqual(lines);
    expect(first.nextDueAtMs).toBeUndefined();
    expect((await world.claim({ rotation: { after: 0 } })).claimed).toEqual([]);
    expect(await store.messages.waitingBacklogs({ after: undefined, limit: 1 })).toEqual([]);
    const beat = await store.workers.heartbeat({
      worker: 'w1',
      timeoutMs: 1_000,
      isLeaving: false,
      accountsVersion: 0,
    });
    expect(beat.nextDueAtMs).toBeUndefined();
    await become(cell, 'here');
    expect((await world.claim({ backlogsToServe: lines })).claimed).toHaveLength(3);
  });

  it('claims nothing of a project that left after the claim had read it', async () => {
    const driver = await open();
    const late = new LateDriver(driver);
    const cell = await cellOver(late);
    await cell.world.accept();
    const other = await cell.world.accept(OF_OTHER);
    late.leaveAfterLook = async (tx) => setPlacement(tx, PROJECT, 'leaving');
    const { claimed } = await cell.world.claim();
    expect(claimed.map(({ message }) => message.key)).toEqual([other.key]);
  });

  it('refuses the outcome of an attempt of a leaving project, and keeps the claim unchanged', async () => {
    const cell = await cellOver(await open());
    const { message, claimToken } = await cell.world.acceptClaimed();
    const settle = () =>
      cell.store.messages.settle({ settlement: settlement(message, claimToken, delivered()), nowMs: T0 });
    await become(cell, 'leaving');
    await expect(settle()).rejects.toEqual(away(false));
    const release = () =>
      cell.store.messages.release({ claims: [{ key: message.key, projectId: PROJECT, claimToken }], nowMs: T0 });
    await expect(release()).rejects.toEqual(away(false));
    expect(await cell.store.workers.orphanedClaims({ limit: 10 })).toEqual([]);
    await become(cell, 'here');
    expect(await cell.store.workers.orphanedClaims({ limit: 10 })).toHaveLength(1);
    expect(await settle()).toMatchObject({ kind: 'saved' });
  });

  it("returns with a heartbeat which of the worker's projects are here and not leaving", async () => {
    const cell = await cellOver(await open());
    const here = async () => {
      const worker = { worker: 'w1', timeoutMs: 1_000, isLeaving: false, accountsVersion: 0 };
      return (await cell.store.workers.heartbeat({ ...worker, projects: [PROJECT, OTHER_PROJECT, 99] })).here;
    };
    expect((await here()).toSorted()).toEqual([PROJECT, OTHER_PROJECT]);
    await become(cell, 'leaving');
    expect(await here()).toEqual([OTHER_PROJECT]);
  });

  it('keeps a leaving worker alive until its timeout while claims are in its name, which may have come with a move', async () => {
    const { store, world } = await cellOver(await open());
    const beat = (worker: string) =>
      store.workers.heartbeat({ worker, timeoutMs: 3_600_000, isLeaving: false, accountsVersion: 0 });
    await beat('w1');
    const claimToken = world.number();
    const message = await world.accept({ state: { kind: 'claimed', claimToken, worker: 'w1' } });
    await store.workers.leave({ worker: 'w1' });
    expect(await beat('w2')).toMatchObject({ hasLate: false, others: ['w1'] });
    await store.messages.release({ claims: [{ key: message.key, projectId: PROJECT, claimToken }], nowMs: T0 });
    await store.workers.leave({ worker: 'w1' });
    expect(await beat('w2')).toMatchObject({ hasLate: true, others: [] });
  });

  it('skips schedules and waits of a leaving project, and returns no times for them', async () => {
    const cell = await cellOver(await open());
    const { world, store } = cell;
    const run = await startRun(world, { id: 'r' });
    await store.waiters.addWaiter({ waiter: waiter(world, run), taken: undefined, nowMs: T0 });
    await store.schedules.saveSchedule({ schedule: schedule(world), fromVersion: undefined, schedulesMax: 1 });
    const due = async () => [
      (await store.schedules.dueSchedules({ nowMs: T0 * 2, limit: 9, bytesMax: 1e6 })).due.length,
      (await store.waiters.dueWaiters({ nowMs: T0 * 2, limit: 9 })).due.length,
    ];
    expect(await due()).toEqual([1, 1]);
    await become(cell, 'leaving');
    expect(await due()).toEqual([0, 0]);
    const beat = await store.workers.heartbeat({
      worker: 'w1',
      timeoutMs: 1_000,
      isLeaving: false,
      accountsVersion: 0,
    });
    expect([beat.nextScheduleAtMs, beat.nextWaiterAtMs]).toEqual([undefined, undefined]);
  });

  it('drops no expired rows while a project is being moved', async () => {
    const cell = await cellOver(await open());
    const { world, store } = cell;
    const { message, claimToken } = await world.acceptClaimed();
    await store.messages.settle({ settlement: settlement(message, claimToken, delivered()), nowMs: T0 });
    const drop = () =>
      store.retention.dropExpired({
        ...{ logsBeforeMs: T0 + 1, deadBeforeMs: T0 + 1, minutesBeforeMs: T0 + 1, keysUsedBeforeMs: T0 + 1 },
        ...{ nowMs: T0 + 1, rowsMax: 100 },
      });
    await become(cell, 'leaving');
    await drop();
    expect(await world.statesOf(message)).toContain('DELIVERED');
    await become(cell, 'here');
    await drop();
    expect(await world.statesOf(message)).toEqual([]);
  });

  it('that is the only one never reads placements', async () => {
    const cell = await cellOver(await open(), { isGuarded: false });
    await become(cell, 'gone');
    await cell.world.accept();
    expect((await cell.world.claim()).claimed).toHaveLength(1);
  });

  it('changes tokens of projects in other cells: the directory has all tokens', async () => {
    const cell = await cellOver(await open());
    await become(cell, 'elsewhere');
    const token = { tokenHash: 'h', projectId: PROJECT, scope: 'full' as const, createdAtMs: T0 };
    await cell.store.projects.addToken(token);
    expect(await cell.store.projects.listTokens()).toHaveLength(1);
  });
});

describe('on PostgreSQL, with two workers', () => {
  async function twoWorkers(limits?: StoreLimits) {
    const url = await migratedDatabase();
    const [held, mover] = [new LateDriver(openPostgres(url)), openPostgres(url)];
    const options = limits ? { limits } : {};
    const first = await cellOver(held, options);
    const second = await cellOver(openPostgres(url), options);
    for (const { world } of [first, second]) await world.acceptClaimed(OF_OTHER); // so that numbers for their logs are reserved
    return { held, first, second, mover };
  }

  it.each([
    ['a plain message', {}],
    ['a message of a lane', IN_LANE],
  ])('a batch that saw the project here commits before its move continues: %s', async (_, options) => {
    const { held, first, second, mover } = await twoWorkers();
    const { isThere, release } = held.hold();
    const accepted = first.world.accept(options);
    await isThere;
    const left = (async () => {
      await become({ driver: mover }, 'leaving');
      await mover.transaction((tx) => awaitBatches(tx, PROJECT));
    })();
    await eventually('the mover waits', () => isSomebodyWaiting(second.driver));
    release();
    await left;
    const saved = 'select key from messages where project_id = ?';
    expect(await mover.read((queries) => queries.query(saved, [PROJECT]))).toHaveLength(1);
    await accepted;
    await expect(first.world.accept(options)).rejects.toEqual(away(false));
    await expect(second.world.accept(options)).rejects.toEqual(away(false));
  });

  it.each([
    ['plain', 'of a lane', {}, IN_LANE],
    ['of a lane', 'plain', IN_LANE, {}],
    ['plain', 'plain', {}, {}],
  ])('a batch that is %s does not keep one that is %s waiting', async (_, __, ofFirst, ofSecond) => {
    const { held, first, second } = await twoWorkers();
    const { isThere, release } = held.hold();
    const accepted = first.world.accept(ofFirst);
    await isThere;
    await second.world.accept(ofSecond);
    release();
    await accepted;
  });

  it('a claim that has chosen messages of a project commits before its move continues', async () => {
    const { held, first, second, mover } = await twoWorkers();
    await first.world.accept();
    const { isThere, release } = held.hold();
    const claim = first.world.claim();
    await isThere;
    await become({ driver: mover }, 'leaving');
    const waited = mover.transaction((tx) => awaitBatches(tx, PROJECT));
    await eventually('the mover waits', () => isSomebodyWaiting(second.driver));
    release();
    expect((await claim).claimed).toHaveLength(1);
    await waited;
  });

  it('a mover that hangs while it has locked the project blocks no other project', async () => {
    const { first, mover } = await twoWorkers();
    const there = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const hung = mover.transaction(async (tx) => {
      await awaitBatches(tx, PROJECT);
      there.resolve();
      await gate.promise;
    });
    await there.promise;
    const blocked = expect(first.world.accept()).rejects.toThrow('another worker has the project locked');
    await first.world.accept(OF_OTHER);
    await blocked;
    gate.resolve();
    await hung;
  });
});

function schedule(world: World): Schedule {
  return {
    ...{ key: world.number(), projectId: PROJECT, id: 's', createdAtMs: T0 },
    plan: {
      ...{ cron: '* * * * *', method: 'POST', header: {}, body: new Uint8Array() },
      destination: { kind: 'url', url: 'https://example.com/' },
      settings: { dialect: 'upstash', maxRetries: 3 },
    },
    state: { version: 1, isPaused: false, nextAtMs: T0 },
  };
}

async function isSomebodyWaiting(driver: Driver): Promise<boolean> {
  const rows = await driver.read((queries) =>
    queries.query(
      "select 1 as one from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    ),
  );
  return rows.length > 0;
}

/** A database whose next transaction can be stopped, or whose project can leave after a claim has read it. */
class LateDriver implements Driver {
  readonly dialect: Driver['dialect'];
  leaveAfterLook: ((tx: Transaction) => Promise<void>) | undefined;
  readonly #driver: Driver;
  #beforeCommit: (() => Promise<void>) | undefined;

  constructor(driver: Driver) {
    this.dialect = driver.dialect;
    this.#driver = driver;
  }

  /** Stops the next transaction before its commit. Resolves when it is there; `release` lets it continue. */
  hold(): { isThere: Promise<void>; release: () => void } {
    const there = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    this.#beforeCommit = async () => {
      there.resolve();
      await gate.promise;
    };
    return { isThere: there.promise, release: gate.resolve };
  }

  transaction: Driver['transaction'] = (work, options) =>
    this.#driver.transaction(async (tx) => {
      const result = await work(this.#watched(tx));
      const hold = this.#beforeCommit;
      this.#beforeCommit = undefined;
      if (hold) await tx.query('select 1 as one'); // what only writes is sent, and done
      await hold?.();
      return result;
    }, options);

  read: Driver['read'] = (work) => this.#driver.read(work);

  close(): Promise<void> {
    return this.#driver.close();
  }

  #watched(tx: Transaction): Transaction {
    return new Proxy(tx, {
      get: (target, name) => {
        const member = target[name as keyof Transaction];
        if (name !== 'query') return typeof member === 'function' ? member.bind(target) : member;
        return async (text: string, params?: never) => {
          const rows = await target.query(text, params);
          const leave = this.leaveAfterLook;
          if (leave && text.includes('placement in (')) await leave(target);
          return rows;
        };
      },
    });
  }
}
