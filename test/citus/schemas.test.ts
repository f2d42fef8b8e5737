/** How a store is distributed to a node of Citus, and how Waypost detects it. */
import { expect, it } from 'vitest';
import type { CellPoll } from '../../src/engine/stores.ts';
import type { Driver } from '../../src/store/driver.ts';
import { Servers } from '../../src/store/drivers/postgres/connections/servers.ts';
import { PostgresDriver } from '../../src/store/drivers/postgres/driver.ts';
import { openPostgresStore } from '../../src/store/drivers/postgres/open.ts';
import { watchPostgresStore } from '../../src/store/drivers/postgres/watch.ts';
import { systemClock } from '../../src/system/system.ts';
import { World } from '../store/conformance/world.ts';
import { useCitus } from './shared.ts';

const citus = useCitus();

const open = (url: string) =>
  openPostgresStore({ url, listenUrl: '', clock: systemClock, sender: 'one', onFatal: () => {} });

/** Whether the server that answers for the rows is another one than the one that is asked. */
async function isElsewhere(url: string): Promise<boolean> {
  const driver: Driver = new PostgresDriver({
    url,
    connectionsMax: 1,
    timeoutMs: 5_000,
    prepares: true,
    clock: systemClock,
  });
  try {
    const [row] = await driver.read((queries) =>
      queries.query<{ port: number }>('select inet_server_port() as port from migrations where number = 1'),
    );
    return row?.port !== citus().coordinator.port;
  } finally {
    await driver.close();
  }
}

it('a worker makes the schema that its URL names, on a node where the database says that schemas are shards', async () => {
  await citus().query('alter database postgres set citus.enable_schema_based_sharding = on');
  const store = await open(citus().url('made'));
  await store.close();
  await citus().query('alter database postgres reset citus.enable_schema_based_sharding');
  expect(await isElsewhere(citus().url('made'))).toBe(true);
});

it('a store on the coordinator goes to a node as a whole while its workers are stopped', async () => {
  const url = citus().url('grown');
  const before = await World.open(() => open(url));
  const { key } = await before.accept();
  await before.store.close();
  expect(await isElsewhere(url)).toBe(false);
  await citus().query("select citus_schema_distribute('grown')");
  expect(await isElsewhere(url)).toBe(true);
  const after = await World.open(() => open(url));
  const { claimed } = await after.claim();
  expect(claimed.map(({ message }) => message.key)).toEqual([key]);
  await after.store.close();
});

it('a worker at a node does not start before the tables are there, and says where they can be made', async () => {
  await citus().makeSchema('empty');
  const [node] = citus().nodes;
  if (!node) throw new Error('there is no node');
  await expect(open(citus().url('empty', node))).rejects.toThrow(/worker node|coordinator|not allowed on this node/);
});

it('a look at a cell at rest knows when something is due there, whichever server is asked', async () => {
  await citus().makeSchema('rests');
  const world = await World.open(() => open(citus().url('rests')));
  const looks = async (): Promise<CellPoll[]> => {
    const options = { connectionsMax: 3, timeoutMs: 5_000, clock: systemClock };
    const found: CellPoll[] = [];
    for (const through of [citus().coordinator, ...citus().nodes]) {
      const url = citus().url('rests', through);
      const watch = watchPostgresStore({ ...options, prepares: true, url }, new Servers(options), '');
      found.push(await watch.poll());
      await watch.close();
    }
    return found;
  };
  const atRest = { dueInMs: Infinity, eventInMs: Infinity, isNeglected: false };
  expect(await looks()).toEqual([atRest, atRest, atRest]);
  await world.accept();
  expect((await looks()).map(({ dueInMs }) => Number.isFinite(dueInMs))).toEqual([true, true, true]);
  await world.store.close();
});
