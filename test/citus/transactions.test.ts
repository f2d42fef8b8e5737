/** The guarantees of a transaction whose rows are on another node of Citus than the one to which the worker is connected. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CommitUnknown, StoreUnavailable } from '../../src/engine/store-errors.ts';
import type { Queries } from '../../src/store/driver.ts';
import { PostgresDriver } from '../../src/store/drivers/postgres/driver.ts';
import { systemClock } from '../../src/system/system.ts';
import { eventually } from '../support/eventually.ts';
import type { Cluster } from '../support/postgres/cluster.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { makeStore } from './citus.ts';
import { useCitus } from './shared.ts';

const SCHEMA = 'cell';
const TIMEOUT_MS = 1_000;

const citus = useCitus({
  hasLinks: true,
  settings: { shared_preload_libraries: 'citus, pg_stat_statements', 'pg_stat_statements.track_utility': 'on' },
});
let node: Cluster;
let driver: PostgresDriver;

beforeAll(async () => {
  const url = await makeStore(citus(), SCHEMA);
  await citus().query(`create table ${SCHEMA}.kept (n bigint primary key)`);
  node = await citus().placeOf(SCHEMA);
  await citus().query('create extension pg_stat_statements');
  driver = open(url);
});
afterAll(() => driver.close());

function open(url: string, timeoutMs = TIMEOUT_MS): PostgresDriver {
  return new PostgresDriver({ url, connectionsMax: 4, timeoutMs, prepares: true, clock: systemClock });
}

const insert = (n: number, by = driver) => by.transaction((tx) => tx.insertMany('kept', ['n'], [[n]]));
const isKept = async (n: number) =>
  (await citus().query(`select 1 from ${SCHEMA}.kept where n = $1`, [n])).length === 1;

/** Heard of from the start, since it may come while the test waits for something else. */
const outcomeOf = (work: Promise<void>): Promise<unknown> =>
  work.then(
    () => 'certain',
    (error: unknown) => error,
  );

/** A setting of a server is in force when a new session has it. */
async function set(server: Cluster, name: string, value: string): Promise<void> {
  await server.query(`alter system set ${name} = '${value}'`);
  await server.query('select pg_reload_conf()');
  await eventually(`${name} to be in force`, async () => (await server.query(`show ${name}`))[0]?.[name] === value);
}

describe('on the node that has the rows', () => {
  /** As the node that has the rows says, in a transaction. */
  const settingThere = async (name: string) => {
    const ask = `select current_setting('${name}') as setting, inet_server_port() as port from migrations where number = 1`;
    const [row] = await driver.transaction((tx) => tx.query<{ setting: string; port: number }>(ask));
    expect(row?.port).toBe(node.port);
    return row?.setting;
  };

  it.each([
    ['off', 'on'],
    ['remote_write', 'remote_write'],
    ['on', 'on'],
  ])(
    'a commit is waited for to the disk at least, if the operator has set synchronous_commit to %s',
    async (value, inForce) => {
      await set(node, 'synchronous_commit', value);
      expect(await settingThere('synchronous_commit')).toBe(inForce);
    },
  );

  it.each([
    ['statement_timeout', '900ms'],
    ['idle_in_transaction_session_timeout', '900ms'],
    ['enable_seqscan', 'off'],
    ['join_collapse_limit', '1'],
  ])('%s is in force', async (name, value) => {
    expect(await settingThere(name)).toBe(value);
  });

  it('a lock is waited for as long as the transaction says, and a silent transaction loses it and runs again', async () => {
    const lock = 'select number from migrations where number = 1 for update';
    const [locked, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let tries = 0;
    const silent = driver.transaction(async (tx) => {
      tries += 1;
      await tx.query(lock);
      locked.resolve();
      await over.promise;
      await tx.query(lock);
    });
    await locked.promise;
    const take = () => driver.transaction((tx) => tx.query(lock), { lockWaitMs: 50 });
    await expect(take()).rejects.toMatchObject({ name: 'LockNotFree' });
    await eventually('the lock to be free', () =>
      take().then(
        () => true,
        () => false,
      ),
    );
    over.resolve();
    await silent;
    expect(tries).toBe(2);
  });
});

describe('a commit', () => {
  it.each([
    ['after', true],
    ['before', false],
  ] as const)('is looked up where the rows are, when the node is lost %s it had it', async (when, isThere) => {
    const n = isThere ? 10 : 11;
    const cut = (await citus().linkTo(SCHEMA)).cutAtCommit(when);
    const outcome = await outcomeOf(insert(n));
    await cut;
    expect(outcome === 'certain').toBe(isThere);
    expect(outcome).not.toBeInstanceOf(CommitUnknown);
    expect(await isKept(n)).toBe(isThere);
  });

  it.each([
    ['after', true],
    ['before', false],
  ] as const)('is looked up where the rows are, when the coordinator is lost %s it had it', async (when, isThere) => {
    const n = isThere ? 20 : 21;
    const proxy = await TcpProxy.open(citus().coordinator.port);
    const through = open(proxy.through(citus().url(SCHEMA)));
    await insert(n + 100, through);
    const cut = proxy.cutAtCommit(when);
    const outcome = await outcomeOf(insert(n, through));
    await cut;
    expect(outcome === 'certain').toBe(isThere);
    expect(outcome).not.toBeInstanceOf(CommitUnknown);
    expect(await isKept(n)).toBe(isThere);
    await through.close();
    await proxy.close();
  });

  it('is looked up where the rows are, when the coordinator crashes before it has told the node', async () => {
    const slow = open(citus().url(SCHEMA), 10_000);
    const link = await citus().linkTo(SCHEMA);
    await insert(30, slow);
    const outcome = outcomeOf(
      slow.transaction(async (tx) => {
        await tx.run('insert into kept (n) values (?)', [31]);
        link.stall();
      }),
    );
    await eventually('the coordinator to commit', async () => {
      const committing = await citus().query(
        "select 1 from pg_stat_activity where query = 'commit' and state = 'active'",
      );
      return committing.length > 0;
    });
    await citus().coordinator.restart('immediate');
    link.cutAll();
    link.flow();
    const heard = await outcome;
    expect(heard).toBeInstanceOf(StoreUnavailable);
    expect(heard).not.toBeInstanceOf(CommitUnknown);
    expect(await isKept(31)).toBe(false);
    await insert(31, slow);
    await slow.close();
  });

  it('is not certain when the node crashes meanwhile: then it may be another server that answers', async () => {
    const cut = (await citus().linkTo(SCHEMA)).cutAtCommit('after');
    const outcome = outcomeOf(insert(40));
    await cut;
    await node.restart('immediate');
    expect(await outcome).toBeInstanceOf(CommitUnknown);
  });

  describe('while the node waits for a synchronous standby that is away', () => {
    const waiting = () => node.query("select pid from pg_stat_activity where wait_event = 'SyncRep'");

    beforeEach(async () => {
      await set(node, 'synchronous_standby_names', 'away');
      await node.query('checkpoint'); // by the process that tells the others whether to wait
    });
    afterEach(async () => {
      await set(node, 'synchronous_standby_names', '');
      await eventually('nobody to wait any more', async () => (await waiting()).length === 0);
    });

    it('is not certain, however long that takes', async () => {
      expect(await outcomeOf(insert(50))).toBeInstanceOf(CommitUnknown);
    });

    it.each(['pg_cancel_backend', 'pg_terminate_backend'])(
      'is not certain when an operator ends the wait with %s on the node',
      async (end) => {
        const outcome = outcomeOf(insert(end.length + 500));
        await eventually('the commit to wait', async () => (await waiting()).length === 1);
        await node.query(`select ${end}(pid) from pg_stat_activity where wait_event = 'SyncRep'`);
        expect(await outcome).toBeInstanceOf(CommitUnknown);
      },
    );
  });
});

describe('a transaction that loses its node in the middle', () => {
  it('fails as a whole, also when all it has done so far is read and lock', async () => {
    const outcome = await outcomeOf(
      driver.transaction(async (tx) => {
        await tx.query('select number from migrations where number = 1 for update');
        await node.query(
          `select pg_terminate_backend(pid) from pg_stat_activity where state = 'idle in transaction' and pid <> pg_backend_pid()`,
        );
        await tx.run('insert into kept (n) values (?)', [60]);
      }),
    );
    expect(outcome).toBeInstanceOf(StoreUnavailable);
    expect(outcome).not.toBeInstanceOf(CommitUnknown);
    expect(await isKept(60)).toBe(false);
  });
});

it('a transaction that inserts is committed in one phase: two leave rows locked for a minute where a server dies between them', async () => {
  const prepared = "select count(*)::int as count from pg_stat_statements where query like 'PREPARE TRANSACTION%'";
  const before = await node.query(prepared);
  await insert(80);
  await insert(81);
  expect(await node.query(prepared)).toEqual(before);
});

describe('a move of the store to the other node', () => {
  it('waits for a transaction that has only read and locked, and keeps what begins later waiting', async () => {
    const patient = open(citus().url(SCHEMA), 20_000);
    const lock = 'select inet_server_port() as port from migrations where number = 1 for update';
    const place = async (by: Queries) => (await by.query<{ port: number }>(lock))[0]?.port;
    let moved: Promise<Cluster> | undefined;
    let later: Promise<unknown> | undefined;
    await patient.transaction(async (tx) => {
      const before = await place(tx);
      moved = citus().move(SCHEMA, 'block_writes');
      await eventually('the move to wait', async () => {
        await tx.query('select 1 as one from migrations where number = 1'); // so that it is not taken for silent
        const waiting = await citus().query(
          "select 1 from pg_stat_activity where query ~ 'schema_move' and wait_event_type = 'Lock'",
        );
        return waiting.length > 0;
      });
      later = patient.transaction(place);
      await tx.run('insert into kept (n) values (?)', [70]);
      expect(await place(tx)).toBe(before);
    });
    node = (await moved) ?? node;
    expect(await later).toBe(node.port);
    expect(await isKept(70)).toBe(true);
    await patient.close();
  });
});

describe('numbers', () => {
  const reserve = (count: number, by = driver) => by.transaction((tx) => tx.reserve('keys and tokens', count));

  it('follow each other without a gap, whichever server is asked for them', async () => {
    const others = citus().nodes.map((server) => open(citus().url(SCHEMA, server)));
    const first = await reserve(20);
    let next = first + 20;
    for (const by of [...others, driver]) {
      expect(await reserve(5, by)).toBe(next);
      next += 5;
    }
    await Promise.all(others.map((by) => by.close()));
  });

  it('skip as many as may be lost, once, when another server has the rows', async () => {
    const first = await reserve(1);
    node = await citus().move(SCHEMA);
    const next = await reserve(1);
    expect(next).toBeGreaterThan(first + 1_000_000_000);
    expect(next).toBeLessThanOrEqual(first + 1 + 2_000_000_000);
    expect(await reserve(1)).toBe(next + 1);
  });
});
