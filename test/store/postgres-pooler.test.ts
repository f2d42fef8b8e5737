/** Workers behind a pooler that gives each transaction any free connection: PgBouncer, in transaction mode. */

import { readFileSync } from 'node:fs';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import { PostgresDriver } from '../../src/store/drivers/postgres/driver.ts';
import { openPostgresStore } from '../../src/store/drivers/postgres/open.ts';
import type { Store } from '../../src/store/store.ts';
import { systemClock } from '../../src/system/system.ts';
import { obstacleTo } from '../support/debian.ts';
import { eventually } from '../support/eventually.ts';
import { keepsStatementsApart, Pooler, PROGRAM } from '../support/postgres/pooler.ts';
import { freshDatabase, sharedCluster } from '../support/postgres/shared.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { delivered, settlement, T0, World } from './conformance/world.ts';

const obstacle = obstacleTo(PROGRAM);
const TIMEOUT_MS = 10_000;

describe.skipIf(obstacle !== undefined)(
  `behind PgBouncer, with one connection for all${obstacle === undefined ? '' : ` (skipped: ${obstacle})`}`,
  () => {
    let pooler: Pooler;
    let directUrl: string;
    let url: string;
    const opened: { close(): Promise<void> }[] = [];

    beforeAll(async () => {
      // A caller with one connection that waits for another would wait for ever.
      pooler = await Pooler.open({ port: (await sharedCluster()).port, poolSize: 1 });
    });
    afterEach(async () => {
      await Promise.all(opened.splice(0).map((each) => each.close()));
    });
    afterAll(() => pooler?.close());

    async function open(sender: string): Promise<Store> {
      const store = await openPostgresStore({
        url,
        listenUrl: directUrl,
        prepares: false,
        timeoutMs: TIMEOUT_MS,
        clock: systemClock,
        sender,
        onFatal: (error) => {
          throw error;
        },
      });
      opened.push(store);
      return store;
    }

    /** Workers that start at the same time, on an unused database. */
    async function openWorlds(count: number): Promise<World[]> {
      directUrl = await freshDatabase();
      url = pooler.through(directUrl);
      const stores = await Promise.all(Array.from({ length: count }, (_, index) => open(`w${index}`)));
      await stores[0]?.projects.ensureProject({ name: 'one', signingKeys: { current: 'c', next: 'n' }, nowMs: T0 });
      return Promise.all(stores.map((store) => World.open(async () => store)));
    }

    function driverAt(at: string, prepares = false): PostgresDriver {
      const driver = new PostgresDriver({
        ...{ url: at, connectionsMax: 4, timeoutMs: TIMEOUT_MS, prepares, clock: systemClock },
      });
      opened.push(driver);
      return driver;
    }

    it('several workers create the schema, accept, claim and settle at the same time', async () => {
      const worlds = await openWorlds(3);
      const accepts = worlds.flatMap((world) => Array.from({ length: 20 }, () => world.accept()));
      await Promise.all(accepts);
      const claims = await Promise.all(worlds.map((world) => world.claim({ limit: 60 })));
      const claimed = claims.flatMap((claim) => claim.claimed);
      expect(new Set(claimed.map(({ message }) => message.key)).size).toBe(60);
      expect(claimed).toHaveLength(60);
      const [world] = worlds;
      const settling = claimed.map(({ message, claimToken }) =>
        world?.store.messages.settle({ settlement: settlement(message, claimToken, delivered()), nowMs: T0 }),
      );
      for (const result of await Promise.all(settling)) expect(result?.kind).toBe('saved');
    });

    it('a worker is notified of messages that another leaves waiting, over a connection past the pooler', async () => {
      const [sayer, hearer] = await openWorlds(2);
      const heard: number[] = [];
      if (hearer) hearer.store.events.onDue = (dueAtMs) => heard.push(dueAtMs);
      await eventually('the listener to be there', async () => (await isListened()) === 2);
      const soonMs = systemClock.nowMs() + 5_000;
      await sayer?.accept({ notBeforeMs: soonMs });
      await eventually('the other to be told', () => heard.includes(soonMs));
    });

    it('a transaction leaves none of its settings to the next user of its connection', async () => {
      await openWorlds(1);
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      try {
        const { rows } = await client.query(
          "select name, setting from pg_settings where source = 'session' and name not in ('application_name', 'client_encoding')",
        );
        expect(rows).toEqual([]);
      } finally {
        await client.end();
      }
    });

    it('a transaction has none of the settings that another program has left in its connection', async () => {
      const [world] = await openWorlds(1);
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      await client.query('create schema other');
      const others = {
        bytea_output: 'escape',
        search_path: 'other',
        standard_conforming_strings: 'off',
        TimeZone: 'Asia/Kathmandu',
      };
      for (const [name, value] of Object.entries(others)) await client.query(`set ${name} = '${value}'`);
      try {
        const body = new TextEncoder().encode('{"hello":"\\\\world"}');
        await world?.accept({ body });
        const reopened = await open('later'); // looks up its tables again
        const { claimed } = await (await World.open(async () => reopened)).claim();
        expect(claimed.map(({ message }) => message.body)).toEqual([body]);
        const { rows } = await client.query('show bytea_output'); // the setting to prove, with one connection for all
        expect(rows).toEqual([{ bytea_output: 'escape' }]);
      } finally {
        await client.query('discard all');
        await client.end();
      }
    });

    it('a commit whose response is lost is looked up over another connection', async () => {
      directUrl = await freshDatabase();
      const proxy = await TcpProxy.open(pooler.port);
      opened.push(proxy);
      const driver = driverAt(proxy.through(directUrl));
      await driver.execute('create table kept (n bigint primary key)', []);
      const insert = (n: number) => driver.transaction((tx) => tx.insertMany('kept', ['n'], [[n]]));
      for (let n = 0; n < 4; n += 1) {
        const cut = proxy.cutAtCommit('after');
        const said = await insert(n).then(
          () => 'committed',
          (error: unknown) => (error instanceof StoreUnavailable ? 'not committed' : error),
        );
        await cut;
        // PgBouncer may notice the end of the connection before it forwards the commit.
        const [row] = await driver.read((queries) => queries.query('select n from kept where n = ?', [n]));
        expect(said).toBe(row ? 'committed' : 'not committed');
      }
    });

    it('PgBouncer accepts the settings that operators are advised to use', async () => {
      const page = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');
      const [, ini = ''] = /```ini\n\[databases\].*?\[pgbouncer\]\n(.*?)```/s.exec(page) ?? [];
      const told = ini.split('\n').flatMap((line) => {
        const [name = '', value] = line.split(' = ');
        return value === undefined || /^(listen|auth)_/.test(name) ? [] : [[name, value] as const];
      });
      expect(told.map(([name]) => name)).toEqual(expect.arrayContaining(['pool_mode', 'default_pool_size']));
      const asTold = await Pooler.open({
        ...{ port: (await sharedCluster()).port, poolSize: 1, settings: Object.fromEntries(told) },
      });
      opened.push(asTold);
      await driverAt(asTold.through(await freshDatabase())).transaction((tx) => tx.nowMs());
      expect(asTold.log).not.toMatch(/unknown|unrecognized|invalid|ERROR/);
    });

    it('is unavailable while the pooler is gone, and continues when it is back', async () => {
      const [world] = await openWorlds(1);
      await pooler.kill();
      await expect(world?.accept()).rejects.toThrow(StoreUnavailable);
      await pooler.start();
      await world?.accept();
    });

    it('names the wrong setting when statements are kept prepared although the pooler cannot', async () => {
      // Poolers that can do it are configured not to.
      const careless = await Pooler.open({
        ...{ port: (await sharedCluster()).port, poolSize: 1 },
        ...(keepsStatementsApart() && { settings: { max_prepared_statements: '0' } }),
      });
      opened.push(careless);
      url = careless.through(await freshDatabase());
      const [first, second] = [driverAt(url, true), driverAt(url, true)];
      const now = (driver: PostgresDriver) => driver.transaction((tx) => tx.nowMs());
      await now(first);
      await expect(now(second)).rejects.toThrow(/WAYPOST_DATABASE_PREPARE=false.*already exists/);
    });

    async function isListened(): Promise<number> {
      const client = new pg.Client({ connectionString: directUrl });
      await client.connect();
      const { rowCount } = await client.query(
        "select 1 from pg_stat_activity where datname = current_database() and query = 'listen waypost_due'",
      );
      await client.end();
      return rowCount ?? 0;
    }
  },
);
