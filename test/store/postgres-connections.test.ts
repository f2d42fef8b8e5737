/** Connections to PostgreSQL that end while no request is pending, or in a way that looks like a response. */
import { createServer, type Server, type Socket } from 'node:net';
import pg from 'pg';
import { afterEach, expect, it } from 'vitest';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import { Servers } from '../../src/store/drivers/postgres/connections/servers.ts';
import { PostgresDriver } from '../../src/store/drivers/postgres/driver.ts';
import { classify, isReportedFailure } from '../../src/store/drivers/postgres/failures.ts';
import { openPostgresStore } from '../../src/store/drivers/postgres/open.ts';
import { systemClock } from '../../src/system/system.ts';
import { listen, portOf } from '../support/listen.ts';
import { errorResponse } from '../support/postgres/error-response.ts';
import { freshDatabase } from '../support/postgres/shared.ts';

const AUTHENTICATED = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0]);
const READY = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);

let server: Server | undefined;
afterEach(() => server?.close());

async function driverOf(greet: (socket: Socket) => void): Promise<PostgresDriver> {
  server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => greet(socket));
  });
  await listen(server);
  const port = portOf(server);
  return new PostgresDriver({
    url: `postgres://somebody@127.0.0.1:${port}/database`,
    connectionsMax: 2,
    timeoutMs: 1_000,
    prepares: true,
    clock: systemClock,
  });
}

it('is unavailable, and does not end the process, when the server closes a connection at once', async () => {
  const goodbye = errorResponse('57P01', 'terminating connection due to administrator command');
  const driver = await driverOf((socket) => socket.end(Buffer.concat([AUTHENTICATED, READY, goodbye])));
  await expect(driver.transaction(async () => undefined)).rejects.toThrow(StoreUnavailable);
  await driver.close();
});

it('is unavailable when the server has no connection to spare', async () => {
  const driver = await driverOf((socket) => socket.end(errorResponse('53300', 'sorry, too many clients already')));
  await expect(driver.read(async () => undefined)).rejects.toThrow(StoreUnavailable);
  await driver.close();
});

it('is unavailable when the server limits the time of transactions, or the pool has ended', () => {
  const ended = new Error('Cannot use a pool after calling end on the pool');
  const tooLong = Object.assign(new pg.DatabaseError('terminating connection due to transaction timeout', 0, 'error'), {
    code: '25P04',
  });
  for (const error of [ended, tooLong]) expect(classify(error)).toBeInstanceOf(StoreUnavailable);
});

it('does not mistake an error code of the operating system for one of the server', () => {
  const broken = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' });
  expect(isReportedFailure(broken)).toBe(false);
  expect(classify(broken)).toBeInstanceOf(StoreUnavailable);
});

it.each(['awaited', 'only sent'])('leaves a server that turned read-only, even if the write was %s', async (how) => {
  const driver = new PostgresDriver({
    url: await freshDatabase(),
    connectionsMax: 1,
    timeoutMs: 1_000,
    prepares: true,
    clock: systemClock,
  });
  const connection = () => driver.read((queries) => queries.query('select pg_backend_pid() as pid'));
  await driver.transaction((tx) => tx.run('create table kept (n bigint primary key)'));
  const before = await connection();
  expect(await connection()).toEqual(before);
  const write = driver.transaction(async (tx) => {
    await tx.run('set transaction read only'); // like all transactions after a failover, or when a host is out of disk space
    if (how === 'awaited') await tx.run('insert into kept values (1)');
    else await tx.insertMany('kept', ['n'], [[1]]);
  });
  await expect(write).rejects.toThrow(StoreUnavailable);
  expect(await connection()).not.toEqual(before);
  await driver.close();
});

it('takes few connections for many stores of one server that are opened together', async () => {
  const url = await freshDatabase();
  const servers = new Servers({ connectionsMax: 3, timeoutMs: 30_000, clock: systemClock });
  const open = (nth: number) =>
    openPostgresStore({
      ...{ url: `${url}?schema=s${nth}`, listenUrl: '', servers, clock: systemClock, sender: 'test' },
      onFatal: (error) => {
        throw error;
      },
    });
  const watcher = new PostgresDriver({ url, connectionsMax: 1, timeoutMs: 5_000, prepares: true, clock: systemClock });
  const others = `select count(*) as count from pg_stat_activity
    where datname = current_database() and application_name = 'waypost' and pid <> pg_backend_pid()`;
  let most = 0;
  let isOpening = true;
  const watching = (async () => {
    while (isOpening) {
      const [row] = await watcher.read((queries) => queries.query<{ count: number }>(others));
      most = Math.max(most, Number(row?.count));
    }
  })();
  const stores = await Promise.all(Array.from({ length: 12 }, (_, nth) => open(nth)));
  isOpening = false;
  await watching;
  expect(most).toBeLessThanOrEqual(3 + 4);
  for (const store of [...stores, watcher]) await store.close();
});
