/** The store on one version of PostgreSQL, against the common specification. */

import pg from 'pg';
import { afterAll } from 'vitest';
import { PostgresDriver } from '../../src/store/drivers/postgres/driver.ts';
import { LogPartitions } from '../../src/store/drivers/postgres/log-partitions.ts';
import { openPostgresStore } from '../../src/store/drivers/postgres/open.ts';
import type { Store } from '../../src/store/store.ts';
import { systemClock } from '../../src/system/system.ts';
import { makeHostile } from '../support/postgres/hostile.ts';
import { migratedDatabase } from '../support/postgres/shared.ts';
import { type OpenStore, T0 } from './conformance/world.ts';

const DAY = 86_400_000;
/** On a busy machine, a case with tens of thousands of messages needs longer than a server would wait. */
const TIMEOUT_MS = 120_000;

const onFatal = (error: Error) => {
  throw error;
};

/** `makeUrl`: of a database that has the schema. Making one takes a tenth of a second, so one serves all cases of a suite, emptied when a case closes its store. */
export function openShared(makeUrl: () => Promise<string>): OpenStore {
  let url: Promise<string> | undefined;
  let shared: Store | undefined;
  let cleaner: pg.Client | undefined;
  let deletes: string | undefined;
  let driver: PostgresDriver | undefined;
  let count = 0;
  afterAll(async () => {
    await shared?.close();
    await cleaner?.end();
    await driver?.close();
  });
  const empty = async (connectionString: string) => {
    cleaner ??= await connect(connectionString);
    deletes ??= await deletesFrom(cleaner);
    await cleaner.query(deletes);
  };
  /** Of the cases' time, so that their logs go as those of a server do; those that were dropped are made anew. */
  const makeDays = async (connectionString: string) => {
    driver ??= new PostgresDriver({
      url: connectionString,
      connectionsMax: 1,
      timeoutMs: TIMEOUT_MS,
      prepares: true,
      clock: systemClock,
    });
    await new LogPartitions(driver).createFor({ fromMs: T0, toMs: T0 + 3 * DAY });
  };
  return async (limits) => {
    url ??= makeUrl();
    const connectionString = await url;
    count += 1;
    const open = () =>
      openPostgresStore({
        url: connectionString,
        listenUrl: '',
        timeoutMs: TIMEOUT_MS,
        clock: systemClock,
        onFatal,
        sender: `w${count}`,
        ...(limits && { limits }),
      });
    if (!limits) shared ??= await open();
    const store = (limits ? undefined : shared) ?? (await open());
    await makeDays(connectionString);
    return new Proxy(store, {
      get: (target, name) => {
        if (name === 'close') {
          return async () => {
            if (limits) await target.close();
            await empty(connectionString);
          };
        }
        const member: unknown = Reflect.get(target, name);
        return typeof member === 'function' ? member.bind(target) : member;
      },
    });
  };
}

/** What empties all tables; with a table go its partitions. */
async function deletesFrom(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ relname: string }>(
    `select relname from pg_class where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') and not relispartition
       and relname not in ('numbers', 'migrations', 'log_expiry')`,
  );
  return rows.map(({ relname }) => `delete from ${relname}`).join('; ');
}

async function connect(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  // Whatever the defaults of the database are. On Citus the URL names the schema.
  await client.query(
    "select set_config(name, '0', false) from pg_settings where name ~ '^(statement|lock|transaction)_timeout$'",
  );
  if (!new URL(connectionString).searchParams.has('schema')) await client.query('set search_path = public');
  return client;
}

export async function hostileDatabase(): Promise<string> {
  return makeHostile(await migratedDatabase());
}
