/**
 * P1: a transaction is reported as committed only if it is, even if the connection or the server fails during the
 * commit.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CommitUnknown, StoreUnavailable } from '../../src/engine/store-errors.ts';
import { PostgresDriver } from '../../src/store/drivers/postgres/driver.ts';
import { systemClock } from '../../src/system/system.ts';
import { eventually } from '../support/eventually.ts';
import { errorResponse } from '../support/postgres/error-response.ts';
import { type Pair, startPair } from '../support/postgres/standby.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

const TIMEOUT_MS = 500;

/** Awaited from the start, because it may arrive while the test waits for something else. */
const outcomeOf = (work: Promise<void>): Promise<unknown> =>
  work.then(
    () => 'certain',
    (error: unknown) => error,
  );

describe('a commit on a primary with a synchronous standby', () => {
  let pair: Pair;
  let proxy: TcpProxy;
  let driver: PostgresDriver;

  beforeAll(async () => {
    pair = await startPair({ synchronous: true });
    await pair.primary.query('create table kept (n bigint primary key)');
    proxy = await TcpProxy.open(pair.primary.port);
    driver = new PostgresDriver({
      url: proxy.through(pair.primary.url()),
      connectionsMax: 4,
      timeoutMs: TIMEOUT_MS,
      prepares: true,
      clock: systemClock,
    });
  });
  afterAll(async () => {
    await driver.close();
    await proxy.close();
    await pair.dispose();
  });

  const insert = (n: number) => driver.transaction((tx) => tx.insertMany('kept', ['n'], [[n]]));
  const isKept = async (n: number, where = pair.primary) =>
    (await where.query('select 1 from kept where n = $1', [n])).length === 1;

  it('is certain although its response was lost', async () => {
    await insert(1);
    const cut = proxy.cutAtCommit('after');
    await insert(2);
    await cut;
    expect(await isKept(2)).toBe(true);
  });

  it.each([
    ['after', true],
    ['before', false],
  ] as const)(
    'is looked up when the server closes the connection instead of responding, %s it had it',
    async (when, isThere) => {
      const n = isThere ? 30 : 31;
      const cut = proxy.cutAtCommit(
        when,
        errorResponse('57P01', 'terminating connection due to administrator command'),
      );
      // The write is confirmed before the commit is sent: the server's response is only about the commit.
      const write = driver.transaction(async (tx) => {
        await tx.run('insert into kept (n) values (?)', [n]);
      });
      const outcome = await outcomeOf(write);
      await cut;
      expect(outcome === 'certain').toBe(isThere);
      expect(outcome).not.toBeInstanceOf(CommitUnknown);
      expect(await isKept(n)).toBe(isThere);
    },
  );

  it('has not happened when the connection was lost before', async () => {
    const cut = proxy.cutAtCommit('before');
    const outcome = await outcomeOf(insert(3));
    expect(outcome).toBeInstanceOf(StoreUnavailable);
    expect(outcome).not.toBeInstanceOf(CommitUnknown);
    await cut;
    expect(await isKept(3)).toBe(false);
    await insert(3);
  });

  it('is not certain while the standby does not have it, however long that takes', async () => {
    pair.link.stall();
    await expect(insert(4)).rejects.toThrow(CommitUnknown);
    pair.link.flow();
    await insert(5);
  });

  it.each(['pg_terminate_backend', 'pg_cancel_backend'])(
    'is not certain when an operator ends the wait for the standby with %s',
    async (end) => {
      pair.link.stall();
      const outcome = outcomeOf(insert(end.length));
      await eventually('the wait to be ended', async () => {
        const ended = await pair.primary.query(`select ${end}(pid) from pg_stat_activity where wait_event = 'SyncRep'`);
        return ended.length > 0;
      });
      expect(await outcome).toBeInstanceOf(CommitUnknown);
      pair.link.flow();
      await insert(end.length + 100);
    },
  );

  it('is not mistaken for a transaction of the promoted standby, which assigns the same ids again', async () => {
    pair.link.stall();
    const outcome = outcomeOf(insert(8));
    await eventually('the commit to wait for the standby', async () => {
      const waiting = await pair.primary.query("select 1 from pg_stat_activity where wait_event = 'SyncRep'");
      return waiting.length > 0;
    });
    proxy.stall(); // nobody notices the end of the primary before the standby is promoted
    await pair.primary.kill();
    await pair.promote();
    // Enough transactions that one of them probably gets the id of the lost one.
    for (let n = 1_000; n < 1_040; n += 1) await pair.standby.query('insert into kept values ($1)', [n]);
    proxy.pointTo(pair.standby.port);
    proxy.flow();
    expect(await outcome).toBeInstanceOf(CommitUnknown);
    expect(await isKept(8, pair.standby)).toBe(false);
    await insert(9);
    expect(await isKept(9, pair.standby)).toBe(true);
  });
});
