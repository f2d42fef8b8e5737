/** Several stores in one database, each in its own schema, over the same connections. */

import pg from 'pg';
import { afterEach, expect, it } from 'vitest';
import { Servers } from '../../src/store/drivers/postgres/connections/servers.ts';
import { locationOf } from '../../src/store/drivers/postgres/connections/url.ts';
import { openPostgresStore } from '../../src/store/drivers/postgres/open.ts';
import type { Store } from '../../src/store/store.ts';
import { systemClock } from '../../src/system/system.ts';
import { eventually } from '../support/eventually.ts';
import { freshDatabase } from '../support/postgres/shared.ts';
import { World } from './conformance/world.ts';

const stores: Store[] = [];
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
});

async function open(url: string, { servers, sender = 'one' }: { servers?: Servers; sender?: string } = {}) {
  const onFatal = (error: Error) => {
    throw error;
  };
  const store = await openPostgresStore({ url, servers, clock: systemClock, sender, onFatal });
  stores.push(store);
  return store;
}

async function execute(url: string, text: string): Promise<object[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<object>(text);
  await client.end();
  return rows;
}

const SESSIONS = "datname = current_database() and application_name = 'waypost'";

const inSchema = (url: string, schema: string) => `${url}${url.includes('?') ? '&' : '?'}schema=${schema}`;

it('creates the schema that the URL names, and does not touch others', async () => {
  const url = await freshDatabase();
  const servers = new Servers({ connectionsMax: 5, timeoutMs: 10_000, clock: systemClock });
  const worlds = await Promise.all(
    ['one', 'two'].map((schema) => World.open(() => open(inSchema(url, schema), { servers }))),
  );
  const messages = await Promise.all(
    worlds.map((world, index) => world.accept({ url: `https://example.com/${index}` })),
  );
  const claims = await Promise.all(worlds.map((world) => world.claim()));
  expect(claims.map(({ claimed }) => claimed.map(({ message }) => message))).toEqual(
    messages.map((message) => [message]),
  );
  expect(await execute(url, "select to_regclass('public.messages') as found")).toEqual([{ found: null }]);
});

it('needs no more connections for several stores than for one', async () => {
  const url = await freshDatabase();
  const servers = new Servers({ connectionsMax: 3, timeoutMs: 10_000, clock: systemClock });
  const schemas = ['one', 'two', 'three', 'four'];
  const worlds = await Promise.all(schemas.map((schema) => World.open(() => open(inSchema(url, schema), { servers }))));
  await Promise.all(worlds.flatMap((world) => Array.from({ length: 5 }, () => world.accept())));
  const found = await execute(url, `select count(*)::int as count from pg_stat_activity where ${SESSIONS}`);
  expect(found).toEqual([{ count: 4 }]); // three, and one listener
});

it('leaves connections to the others when all statements of one wait for a lock', async () => {
  const url = await freshDatabase();
  const servers = new Servers({ connectionsMax: 4, timeoutMs: 10_000, clock: systemClock });
  const [first, second] = await Promise.all(['one', 'two'].map((schema) => open(inSchema(url, schema), { servers })));
  const somebody = new pg.Client({ connectionString: url });
  await somebody.connect();
  await somebody.query('begin; lock table one.queues in access exclusive mode');
  const waiting = Array.from({ length: 8 }, () => first?.queues.listQueues({ projectId: 1, nowMs: 0 }));
  await second?.ping();
  expect(await second?.queues.listQueues({ projectId: 1, nowMs: 0 })).toEqual([]);
  await somebody.end();
  expect(await Promise.all(waiting)).toEqual(waiting.map(() => []));
});

it('continues for the others when one of them closes', async () => {
  const url = await freshDatabase();
  const servers = new Servers({ connectionsMax: 3, timeoutMs: 10_000, clock: systemClock });
  await Promise.all(['one', 'two'].map((schema) => open(inSchema(url, schema), { servers })));
  const [first] = stores.splice(0, 1);
  const [second] = stores;
  await first?.close();
  await second?.ping();
  const again = await open(inSchema(url, 'one'), { servers });
  await again.ping();
});

it('reads no more of the catalogs when there are other schemas', async () => {
  const url = await freshDatabase();
  const closeAll = async () => {
    for (const store of stores.splice(0)) await store.close();
    await eventually(
      () => 'all sessions to end',
      async () => (await execute(url, `select 1 from pg_stat_activity where ${SESSIONS}`)).length === 0,
    );
  };
  const rowsRead = async () => {
    const [row] = await execute(
      url,
      `select sum(seq_tup_read + case relname when 'pg_type' then idx_tup_fetch else 0 end)::int as count
       from pg_stat_all_tables where relname in ('pg_class', 'pg_type')`,
    );
    return (row as { count: number }).count;
  };
  const cost = async () => {
    const before = await rowsRead();
    const world = await World.open(() => open(inSchema(url, 'one')));
    await world.accept();
    await world.store.backlog.readTotals({ nowMs: 0 });
    await closeAll();
    return (await rowsRead()) - before;
  };
  await cost(); // creates the schema
  const alone = await cost();
  for (const schema of ['two', 'three', 'four', 'five', 'six', 'seven']) await open(inSchema(url, schema));
  await closeAll();
  // Each of them has more than a hundred rows in `pg_class`.
  expect((await cost()) - alone).toBeLessThan(100);
});

it('notifies only workers on the same store of due messages', async () => {
  const url = await freshDatabase();
  const heard = new Map<string, number[]>();
  const listening = new Map<string, PromiseWithResolvers<void>>();
  for (const schema of ['one', 'two']) {
    const servers = new Servers({ connectionsMax: 3, timeoutMs: 10_000, clock: systemClock });
    const store = await open(inSchema(url, schema), { servers, sender: 'hears' });
    const connected = Promise.withResolvers<void>();
    listening.set(schema, connected);
    heard.set(schema, []);
    store.events.onDue = (dueAtMs) => {
      connected.resolve();
      heard.get(schema)?.push(dueAtMs);
    };
  }
  for (const { promise } of listening.values()) await promise;
  for (const times of heard.values()) times.length = 0;
  const dueAtMs = systemClock.nowMs();
  const told = Promise.withResolvers<void>();
  if (stores[0]) stores[0].events.onDue = () => told.resolve();
  const teller = await World.open(() => open(inSchema(url, 'one'), { sender: 'tells' }));
  await teller.accept({ createdAtMs: dueAtMs, notBeforeMs: dueAtMs });
  await told.promise;
  expect(heard.get('two')).toEqual([]);
});

it.each(['Big', '1st', 'a-b', 'x'.repeat(41), ''])('refuses the schema "%s"', (schema) => {
  expect(() => locationOf(inSchema('postgres://localhost/waypost', schema))).toThrow('schema');
});
