/** Logs in tables by day: the day of each entry, and the state of a day at each step of its removal. */

import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import { PostgresDriver } from '../../src/store/drivers/postgres/driver.ts';
import { isExpiring, LogPartitions } from '../../src/store/drivers/postgres/log-partitions.ts';
import { openPostgresStore } from '../../src/store/drivers/postgres/open.ts';
import { checkInvariants } from '../../src/store/operations/reports/invariants.ts';
import type { Store } from '../../src/store/store.ts';
import { systemClock } from '../../src/system/system.ts';
import { eventually } from '../support/eventually.ts';
import type { PostgresVersion } from '../support/postgres/binaries.ts';
import { freshDatabase } from '../support/postgres/shared.ts';
import { bytes, delivered, OTHER_PROJECT, PROJECT, retrying, T0, World } from './conformance/world.ts';

const DAY = 86_400_000;
const TODAY = Math.floor(T0 / DAY); // 15 January 2027
const NOON = TODAY * DAY + DAY / 2;

export function partitionsOn(version: PostgresVersion): void {
  describe(`logs by day on PostgreSQL ${version}`, () => {
    let url: string;
    let client: pg.Client;
    let stores: Store[];
    let drivers: PostgresDriver[];
    let world: World;

    beforeEach(async () => {
      url = await freshDatabase(version);
      [stores, drivers] = [[], []];
      world = await World.open(() => openWorker());
      await world.store.projects.ensureProject({ name: 'one', signingKeys: { current: 'c', next: 'n' }, nowMs: NOON });
      client = await connect();
    });

    afterEach(async () => {
      await client.end();
      await Promise.all([...stores, ...drivers].map((one) => one.close()));
    });

    async function connect(): Promise<pg.Client> {
      const connection = new pg.Client({ connectionString: url });
      await connection.connect();
      return connection;
    }

    async function openWorker(): Promise<Store> {
      const onFatal = (error: Error) => {
        throw error;
      };
      const sender = `worker ${stores.length}`;
      const store = await openPostgresStore({
        ...{ url, listenUrl: '', clock: systemClock, connectionsMax: 5, onFatal, sender },
        nowMs: () => NOON,
      });
      stores.push(store);
      return store;
    }

    /** The steps of another worker, one at a time. */
    function openDays(): LogPartitions {
      const driver = new PostgresDriver({
        url,
        connectionsMax: 2,
        timeoutMs: 10_000,
        prepares: true,
        clock: systemClock,
      });
      drivers.push(driver);
      return new LogPartitions(driver);
    }

    async function valuesOf(text: string): Promise<unknown[]> {
      const { rows } = await client.query<unknown[]>({ text, rowMode: 'array' });
      return rows.map(([value]) => value);
    }

    const tables = (pattern: string) =>
      valuesOf(`select relname from pg_class where relkind = 'r' and relname ~ '${pattern}' order by relname`);
    const contents = () => valuesOf('select key::int from contents order by key');
    const partitionsOf = (table: 'logs' | 'log_details') =>
      valuesOf(`select tableoid::regclass::text from ${table} order by at_ms, seq`);

    function drop(
      nowMs: number,
      { store = world.store, rowsMax = 100, keptMs = DAY, leadMs = 0 } = {},
    ): Promise<boolean> {
      const beforeMs = nowMs - leadMs - keptMs;
      return store.retention.dropExpired({
        logsBeforeMs: beforeMs,
        deadBeforeMs: 0,
        minutesBeforeMs: 0,
        keysUsedBeforeMs: 0,
        ...{ nowMs, leadMs, rowsMax },
      });
    }

    async function dropAll(nowMs: number, options?: Parameters<typeof drop>[1]): Promise<void> {
      while (await drop(nowMs, options));
    }

    async function soundness(): Promise<unknown[]> {
      const [
        driver = new PostgresDriver({ url, connectionsMax: 2, timeoutMs: 10_000, prepares: true, clock: systemClock }),
      ] = drivers;
      if (drivers.length === 0) drivers.push(driver);
      const findings = await driver.read(async (queries) =>
        checkInvariants(queries, { isExpiring: await isExpiring(queries) }),
      );
      return findings.filter(({ offenders }) => offenders.length > 0);
    }

    /** A message that was accepted and delivered at one time. */
    async function deliver(atMs: number, projectId = PROJECT) {
      const { message, claimToken } = await world.acceptClaimed({ createdAtMs: atMs, projectId, body: bytes('body') });
      await world.settle(message, claimToken, delivered(atMs), atMs);
      return message;
    }

    it('creates a table for each day from yesterday to three days ahead when a worker starts, and later ones as time passes', async () => {
      const names = ['20270114', '20270115', '20270116', '20270117', '20270118'];
      expect(await tables('^logs_[0-9]')).toEqual(names.map((name) => `logs_${name}`));
      expect(await tables('^log_details_[0-9]')).toEqual(names.map((name) => `log_details_${name}`));
      await dropAll(NOON + DAY, { keptMs: 100 * DAY });
      expect(await tables('^logs_[0-9]')).toEqual([...names, '20270119'].map((name) => `logs_${name}`));
    });

    it('puts an entry and its details into the tables of its day', async () => {
      const { message, claimToken } = await world.acceptClaimed({ createdAtMs: NOON });
      const retried = retrying(NOON + DAY, NOON + DAY + 1, 1);
      await world.settle(message, claimToken, retried, NOON + DAY);
      const [first, second] = ['20270115', '20270116'];
      expect(await partitionsOf('logs')).toEqual([first, first, second, second].map((day) => `logs_${day}`));
      expect(await partitionsOf('log_details')).toEqual([`log_details_${second}`, `log_details_${second}`]);
      expect(await world.statesOf(message)).toEqual(['CREATED', 'ACTIVE', 'ERROR', 'RETRY']);
      await world.claim({}, NOON + DAY + 1);
      expect(await world.statesOf(message)).toEqual(['CREATED', 'ACTIVE', 'ERROR', 'RETRY', 'ACTIVE']);
    });

    it('hides a day, drops contents that only this day refers to, and then drops the day', async () => {
      await deliver(NOON);
      const waiting = await world.accept({ createdAtMs: NOON, notBeforeMs: NOON + 10 * DAY, body: bytes('later') });
      const { message: dead } = await world.acceptDead(NOON);
      const { message: retried, claimToken } = await world.acceptClaimed({ createdAtMs: NOON });
      await world.settle(retried, claimToken, retrying(NOON, NOON + DAY, 1), NOON);
      await world.claim({}, NOON + DAY); // its next entry is of another day
      const before = await contents();

      const days = openDays();
      expect(await days.detach(TODAY, NOON)).toBe(true);
      expect(await tables('^expired_logs$|_20270115$')).toEqual(['expired_logs']);
      expect(await contents()).toEqual(before);
      expect(await world.statesOf(retried)).toEqual(['ACTIVE']);
      expect(
        (
          await world.store.logs.listLogs({
            projectId: PROJECT,
            filter: {},
            page: { count: 100, order: 'latestFirst' },
          })
        ).items,
      ).toHaveLength(1);
      expect(await soundness()).toEqual([]);

      expect(await days.dropContents(100)).toBe(true);
      expect(await days.dropContents(100)).toBe(false);
      expect(await contents()).toEqual([waiting.key, dead.key, retried.key]);
      expect(await days.dropExpired(NOON)).toBe(true);
      expect(await tables('expired|_20270115$')).toEqual([]);

      expect(await soundness()).toEqual([]);
      const { claimed } = await world.claim({}, NOON + 10 * DAY);
      expect(claimed.map(({ message }) => message)).toEqual([waiting]);
    });

    it('lets a new worker continue where another one was killed, after each step', async () => {
      for (let count = 0; count < 5; count++) await deliver(NOON);
      expect(await openDays().detach(TODAY, NOON)).toBe(true);
      for (let pieces = 0; pieces < 5; pieces++) {
        // Of each message there are three entries, and none is read twice.
        expect(await contents()).toHaveLength(5 - pieces);
        expect(await openDays().dropContents(3)).toBe(true);
        expect(await soundness()).toEqual([]);
      }
      expect(await contents()).toEqual([]);
      expect(await openDays().dropContents(2)).toBe(false);
      expect(await openDays().dropExpired(NOON)).toBe(true);
      expect(await openDays().dropExpired(NOON)).toBe(true);
      expect(await tables('expired')).toEqual([]);
    });

    it('never drops a detached day before all of it was read', async () => {
      await deliver(NOON);
      const days = openDays();
      await days.detach(TODAY, NOON);
      await days.dropExpired(NOON);
      expect(await tables('expired')).toEqual(['expired_logs']);
      await days.dropContents(1);
      await days.dropExpired(NOON);
      expect(await tables('expired')).toEqual(['expired_logs']);
    });

    it('leaves the days to the worker that drops them, and to others when that worker is killed', async () => {
      await deliver(NOON);
      const killed = await connect();
      killed.on('error', () => {}); // it is about to be killed
      await killed.query('begin; select * from log_expiry for update');
      const days = openDays();
      expect(await days.detach(TODAY, NOON)).toBe(false);
      expect(await days.dropContents(10)).toBe(false);
      expect(await drop(NOON + 3 * DAY)).toBe(false);
      expect(await tables('^logs_20270115$')).toHaveLength(1);
      const { rows } = await killed.query<{ pid: number }>('select pg_backend_pid() as pid');
      const isAlive = () => valuesOf(`select 1 from pg_stat_activity where pid = ${rows[0]?.pid}`);
      await valuesOf(`select pg_terminate_backend(${rows[0]?.pid})`);
      await eventually('its session to end', async () => (await isAlive()).length === 0);
      await dropAll(NOON + 3 * DAY);
      expect(await tables('expired|^logs_20270115$')).toEqual([]);
      expect(await contents()).toEqual([]);
    });

    it('lets several workers drop days together while messages are accepted and delivered', async () => {
      const second = await openWorker();
      for (let day = 0; day < 3; day++) {
        for (let count = 0; count < 10; count++)
          await deliver(NOON + day * DAY, count % 2 === 0 ? PROJECT : OTHER_PROJECT);
      }
      const nowMs = NOON + 3 * DAY;
      const [kept] = await Promise.all([
        Promise.all(Array.from({ length: 20 }, () => deliver(nowMs))),
        dropAll(nowMs, { rowsMax: 7 }),
        dropAll(nowMs, { store: second, rowsMax: 7 }),
      ]);
      await dropAll(nowMs, { rowsMax: 7 });
      expect(await tables('expired|^logs_2027011[456]$')).toEqual([]);
      expect(await contents()).toHaveLength(10 + kept.length);
      expect(await soundness()).toEqual([]);
    });

    it('keeps entries that were written while the clock jumped, and drops them by rows', async () => {
      const late = await deliver(NOON - 30 * DAY);
      const early = await deliver(NOON + 30 * DAY);
      const { message, claimToken } = await world.acceptClaimed({ createdAtMs: NOON + 30 * DAY });
      await world.settle(message, claimToken, retrying(NOON + 30 * DAY, 0, 1), NOON + 30 * DAY);
      expect(new Set(await partitionsOf('logs'))).toEqual(new Set(['logs_default']));
      expect(new Set(await partitionsOf('log_details'))).toEqual(new Set(['log_details_default']));

      await dropAll(NOON);
      expect(await world.statesOf(late)).toEqual([]);
      expect(await world.statesOf(early)).toEqual(['CREATED', 'ACTIVE', 'DELIVERED']);
      // Its day has come: what there is of it stays where it is, and what comes joins that.
      await dropAll(NOON + 30 * DAY);
      expect(await tables('^logs_202702')).not.toContain('logs_20270214');
      expect(await tables('^logs_202702')).toContain('logs_20270215');
      await deliver(NOON + 30 * DAY);
      await dropAll(NOON + 31 * DAY + DAY);
      expect(await valuesOf('select seq from logs_default union all select seq from log_details_default')).toEqual([]);
      expect(await contents()).toEqual([message.key]);
    });

    it('deletes rows of unfinished days when logs are kept for less than a day', async () => {
      await deliver(NOON);
      const late = await deliver(NOON + 10);
      await dropAll(NOON + 1_010, { keptMs: 1_000 });
      expect(await contents()).toEqual([late.key]);
      expect(await tables('^logs_20270115$|expired')).toEqual(['logs_20270115']);
    });

    it('deletes them also while the wall clock is set back, however far the shared time is ahead', async () => {
      await deliver(NOON);
      const late = await deliver(NOON + 10);
      const leadMs = DAY - 500;
      await dropAll(NOON + leadMs + 1_010, { keptMs: 1_000, leadMs });
      expect(await contents()).toEqual([late.key]);
    });

    it('does not wait for a long reader of the logs, but tries again later', async () => {
      await deliver(NOON);
      const dump = await connect();
      await dump.query('begin; select count(*) from logs');
      const nowMs = NOON + 2 * DAY;
      await expect(drop(nowMs)).rejects.toThrow(StoreUnavailable);
      expect(await drop(nowMs)).toBe(false); // it does not even try
      await dump.query('commit');
      await dump.end();
      expect(await drop(nowMs)).toBe(false);
      await dropAll(nowMs + 5 * 60_000);
      expect(await tables('^logs_2027')).toEqual(['16', '17', '18', '19', '20'].map((day) => `logs_202701${day}`));
      expect(await contents()).toEqual([]);
    });

    it('starts on a database with a long reader', async () => {
      const url2 = await freshDatabase(version);
      const options = { url: url2, listenUrl: '', onFatal: () => {}, sender: 'w', clock: systemClock };
      const early = await openPostgresStore({ ...options, nowMs: () => NOON });
      const dump = new pg.Client({ connectionString: url2 });
      await dump.connect();
      await dump.query('begin; select count(*) from logs');
      const store = await openPostgresStore({ ...options, nowMs: () => NOON + 10 * DAY });
      await dump.end();
      const other = await World.open(async () => store);
      const message = await other.accept({ createdAtMs: NOON + 10 * DAY });
      expect(await other.statesOf(message)).toEqual(['CREATED']);
      await Promise.all([store.close(), early.close()]);
    });
  });
}
