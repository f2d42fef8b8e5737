/** A poll of a store on PostgreSQL that is not open returns the work that its workers would have. */
import pg from 'pg';
import { beforeEach, expect, it, onTestFinished } from 'vitest';
import type { CellPoll } from '../../src/engine/stores.ts';
import { Servers } from '../../src/store/drivers/postgres/connections/servers.ts';
import type { PostgresContext } from '../../src/store/drivers/postgres/context.ts';
import { openPostgresStore } from '../../src/store/drivers/postgres/open.ts';
import { type CellWatch, watchPostgresStore } from '../../src/store/drivers/postgres/watch.ts';
import { systemClock } from '../../src/system/system.ts';
import { eventually } from '../support/eventually.ts';
import { freshDatabase } from '../support/postgres/shared.ts';
import { World } from './conformance/world.ts';

const HOUR_MS = 3_600_000;
const NOTHING: CellPoll = { dueInMs: Infinity, eventInMs: Infinity, isNeglected: false };

let world: World;
let watch: CellWatch;

let context: PostgresContext;
const onFatal = (error: Error) => {
  throw error;
};

beforeEach(async () => {
  const url = `${await freshDatabase()}?schema=cell`;
  context = { url, clock: systemClock, connectionsMax: 4, timeoutMs: 10_000, prepares: true };
  const servers = new Servers(context);
  world = await World.open(() => openPostgresStore({ ...context, servers, sender: 'one', onFatal }));
  watch = watchPostgresStore(context, servers, url);
  onTestFinished(async () => {
    await watch.close();
    await world.store.close();
  });
});

const BEAT = { timeoutMs: HOUR_MS, isLeaving: false, accountsVersion: 1 };
const beat = (worker: string, timeoutMs = HOUR_MS) => world.store.workers.heartbeat({ ...BEAT, worker, timeoutMs });
const claimBy = (worker: string) => world.accept({ state: { kind: 'claimed', claimToken: world.number(), worker } });

it('finds no work in an empty one, and the time until the next message otherwise', async () => {
  expect(await watch.poll()).toEqual(NOTHING);
  const { wallMs } = await beat('a');
  await world.accept({ notBeforeMs: wallMs + 2 * HOUR_MS });
  await world.accept({ notBeforeMs: wallMs + HOUR_MS });
  const { dueInMs, isNeglected } = await watch.poll();
  expect(isNeglected).toBe(false);
  expect(dueInMs).toBeLessThanOrEqual(HOUR_MS);
  expect(dueInMs).toBeGreaterThan(HOUR_MS - 60_000);
});

it('is neglected while a claim belongs to no live worker', async () => {
  await beat('a');
  await claimBy('a');
  expect(await watch.poll()).toEqual(NOTHING);
  await claimBy('unknown');
  expect(await watch.poll()).toMatchObject({ isNeglected: true });
});

it('is neglected while a worker is silent, which may have left more than claims, but not after it has left', async () => {
  await beat('a', -1);
  await world.store.workers.leave({ worker: 'a' });
  expect(await watch.poll()).toEqual(NOTHING);
  await beat('silent', 0);
  await eventually('a moment has passed', async () => (await watch.poll()).isNeglected);
});

it('is neglected when the live workers are ahead of a clock that was set back', async () => {
  const { wallMs } = await beat('a');
  await world.store.workers.heartbeat({
    ...{ ...BEAT, worker: 'a' },
    clock: { nowMs: wallMs + HOUR_MS, leadMs: 0 },
  });
  expect(await watch.poll()).toMatchObject({ isNeglected: true });
});

it('is neglected while messages wait in an endpoint backlog', async () => {
  const { wallMs } = await beat('a');
  await world.accept({ state: { kind: 'origin', dueAtMs: wallMs } });
  expect(await watch.poll()).toMatchObject({ isNeglected: true });
});

it('returns when an operator event is due', async () => {
  const fact = { kind: 'origin_held', projectId: 0, atMs: 0, example: 'https://a.example' } as const;
  await world.store.operatorEvents.noteFacts({ facts: [{ key: world.number(), ...fact }] });
  expect(await watch.poll()).toEqual({ ...NOTHING, eventInMs: 0 });
  const { wallMs } = await beat('a');
  const rules = { thresholds: { origin_held: 1 }, quietMs: HOUR_MS, factsMax: 10 };
  await world.store.operatorEvents.gatherFacts({ nowMs: wallMs + HOUR_MS, ...rules });
  const { eventInMs } = await watch.poll();
  expect([eventInMs > HOUR_MS - 60_000, eventInMs <= HOUR_MS]).toEqual([true, true]);
});

it('is noticed at once when a worker notifies that something is due', async () => {
  const heard = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const elsewhere = watchPostgresStore(context, new Servers(context), context.url);
  onTestFinished(() => elsewhere.close());
  let times = 0;
  elsewhere.listen(() => {
    times += 1;
    (times === 1 ? begun : heard).resolve();
  });
  await begun.promise; // earlier notifications are unknown
  await world.accept({ notBeforeMs: (await beat('a')).wallMs });
  await heard.promise;
});

it('takes two connections for many polled stores', async () => {
  const client = new pg.Client({ connectionString: context.url });
  await client.connect();
  onTestFinished(() => client.end());
  // In their own database: the store of the others opens connections at any time.
  const url = `${await freshDatabase()}?schema=cell`;
  await (await openPostgresStore({ ...context, url, listenUrl: '', sender: 'another', onFatal })).close();
  const { connectionsMax, timeoutMs, clock } = context;
  const servers = new Servers({ connectionsMax, timeoutMs, clock });
  const watches = Array.from({ length: 8 }, () => watchPostgresStore({ ...context, url }, servers, url));
  await Promise.all(watches.map((each) => each.poll()));
  // Without processes of the server, such as a vacuum.
  const ofWaypost = "datname = $1 and application_name = 'waypost'";
  const { rows } = await client.query(`select 1 from pg_stat_activity where ${ofWaypost}`, [
    new URL(url).pathname.slice(1),
  ]);
  expect(rows).toHaveLength(2);
  await Promise.all(watches.map((each) => each.close()));
});
