/**
 * A worker that hangs in the middle of a batch blocks only the projects that it has locked, and only for a short time.
 */

import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openPostgresDriver } from '../../src/admin/exclusive-store.ts';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import type { StoreLimits } from '../../src/engine/stores.ts';
import { PostgresDriver } from '../../src/store/drivers/postgres/driver.ts';
import { openPostgresStore } from '../../src/store/drivers/postgres/open.ts';
import type { Store } from '../../src/store/store.ts';
import { systemClock } from '../../src/system/system.ts';
import { eventually } from '../support/eventually.ts';
import { migratedDatabase } from '../support/postgres/shared.ts';
import { type MessageOptions, OTHER_PROJECT, PROJECT, T0, World } from './conformance/world.ts';

const IN_LANE: MessageOptions = { settings: { flowControl: { key: 'k', parallelism: 1, periodS: 1 } } };

let url: string;
let hung: pg.Client;
let order: string[];

beforeEach(async () => {
  url = await migratedDatabase();
  order = [];
});

describe('while a worker hangs that has locked a project', () => {
  let store: Store;
  let world: World;

  beforeEach(async () => {
    await open();
    await store.projects.ensureProject({ name: 'one', signingKeys: { current: 'c', next: 'n' }, nowMs: T0 });
    await store.projects.ensureProject({ name: 'two', signingKeys: { current: 'c', next: 'n' }, nowMs: T0 });
    hung = new pg.Client({ connectionString: url });
    await hung.connect();
    await hung.query('begin');
    await hung.query('select id from projects where id = $1 for update', [PROJECT]);
  });
  afterEach(async () => {
    await hung.end();
    await store.close();
  });

  async function open(timeoutMs = 10_000, limits?: StoreLimits): Promise<void> {
    const onFatal = (error: Error) => {
      throw error;
    };
    store = await openPostgresStore({
      url,
      timeoutMs,
      clock: systemClock,
      sender: 'healthy',
      onFatal,
      ...(limits && { limits }),
    });
    world = await World.open(async () => store);
  }

  const noted = async (name: string, work: Promise<unknown>): Promise<void> => {
    await work;
    order.push(name);
  };

  it('another one accepts, claims and responds for all other projects, and continues with the project when it is free', async () => {
    const ofProject = [
      noted(
        'queue',
        store.queues.saveQueue({ projectId: PROJECT, name: 'q', parallelism: 1, isPaused: false, nowMs: T0 }),
      ),
      noted('lane', world.accept(IN_LANE)),
      noted('lane', world.accept(IN_LANE)),
    ];
    ofProject.push(noted('lane', world.accept(IN_LANE)));
    await Promise.all([
      noted('plain', world.accept()),
      noted('other lane', world.accept({ ...IN_LANE, projectId: OTHER_PROJECT })),
      noted('ping', store.ping()),
      noted(
        'heartbeat',
        store.workers.heartbeat({ worker: 'healthy', timeoutMs: 1_000, isLeaving: false, accountsVersion: 1 }),
      ),
    ]);
    const { claimed } = await world.claim();
    expect(claimed.map(({ message }) => message.projectId).toSorted()).toEqual([PROJECT, OTHER_PROJECT]);
    expect(order.toSorted()).toEqual(['heartbeat', 'other lane', 'ping', 'plain']);
    await hung.query('rollback');
    await Promise.all(ofProject);
    expect(order.slice(4).toSorted()).toEqual(['lane', 'lane', 'lane', 'queue']);
  });

  it('a claim skips the messages that wait for the limit of that project', async () => {
    const limits = { queuesMax: 0, parallelismMax: 1, messagesPerDayMax: 0, journalBytesMax: 0 };
    await store.close();
    await hung.query('rollback');
    await open(10_000, limits);
    const [first, second] = [await world.accept(), await world.accept()];
    const { claimed } = await world.claim();
    expect(claimed.map(({ message }) => message.key)).toEqual([first.key]); // the other one waits for the limit
    await store.close();
    await open(10_000, { ...limits, parallelismMax: 2 });
    await hung.query('begin');
    await hung.query('select id from projects where id = $1 for update', [PROJECT]);
    expect((await world.claim()).claimed).toEqual([]);
    const { rows } = await hung.query('select wait_state from messages where key = $1', [second.key]);
    expect(rows).toEqual([{ wait_state: 4 }]);
    await hung.query('rollback');
    expect((await world.claim()).claimed.map(({ message }) => message.key)).toEqual([second.key]);
  });

  it('commands of the project are refused after the time limit of the database', async () => {
    await store.close();
    await open(300);
    const refused = Promise.allSettled([world.accept(IN_LANE), world.accept(IN_LANE)]);
    for (const each of await refused) {
      expect(each).toMatchObject({ status: 'rejected', reason: expect.any(StoreUnavailable) });
    }
    await hung.query('rollback');
    await world.accept(IN_LANE);
  });

  it('a close waits for blocked commands', async () => {
    const lane = noted('lane', world.accept(IN_LANE));
    await eventually('the batch to have come to the lock', async () => (await locksWaitedFor()) > 0);
    const closed = noted('closed', store.close());
    await eventually('the batch to have given up', async () => (await locksWaitedFor()) === 0);
    await hung.query('rollback');
    await Promise.all([lane, closed]);
    expect(order).toEqual(['lane', 'closed']);
    await open(); // for the transactions after each
  });
});

async function locksWaitedFor(): Promise<number> {
  await hung.query('select pg_stat_clear_snapshot()'); // otherwise a transaction always sees the same
  const { rows } = await hung.query<{ count: number }>(
    `select count(*)::int as count from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  );
  return rows[0]?.count ?? 0;
}

describe('a transaction whose program is silent', () => {
  let driver: PostgresDriver;
  let colleague: PostgresDriver;
  const open = (idleMs: number) =>
    new PostgresDriver({ url, connectionsMax: 2, timeoutMs: 10_000, idleMs, prepares: true, clock: systemClock });

  beforeEach(async () => {
    [driver, colleague] = [open(100), open(10_000)];
    await colleague.transaction((tx) => tx.run('create table counted (n bigint primary key)'));
    await colleague.transaction((tx) => tx.insertMany('counted', ['n'], [[1]]));
  });
  afterEach(async () => {
    await driver.close();
    await colleague.close();
  });

  it.each([
    ['before it writes', true],
    ['before its commit', false],
  ])(
    'is ended by the server %s, so that others get its locks, and runs again when the program continues',
    async (_, isBefore) => {
      const silence = Promise.withResolvers<void>();
      let tries = 0;
      const increment = driver.transaction(async (tx) => {
        await tx.query('select n from counted for update');
        if (!isBefore) await tx.run('update counted set n = n + 1');
        tries += 1;
        if (tries === 1) await silence.promise;
        if (isBefore) await tx.run('update counted set n = n + 1');
      });
      await eventually('the first to have its lock', () => tries === 1);
      await colleague.transaction((tx) => tx.run('update counted set n = n * 10'));
      silence.resolve();
      await increment;
      expect(tries).toBeGreaterThan(1); // on a busy machine the next try may be late too
      expect(await colleague.read((queries) => queries.query('select n from counted'))).toEqual([{ n: 11 }]);
    },
  );

  it('is ended too if the program is a command that copies stores', async () => {
    const command = openPostgresDriver(url);
    const [begun, silence] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const copy = command.transaction(async (tx) => {
      await tx.query('select n from counted for update');
      begun.resolve();
      await silence.promise;
    });
    await begun.promise;
    await colleague.transaction((tx) => tx.run('update counted set n = n * 10'));
    silence.resolve();
    await copy;
    await command.close();
  });
});
