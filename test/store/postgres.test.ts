import pg from 'pg';
import { afterAll } from 'vitest';
import type { Store } from '../../src/engine/stores.ts';
import { openPostgresStore } from '../../src/store/drivers/postgres/open.ts';
import { systemClock } from '../../src/system.ts';
import { freshDatabase } from '../support/postgres/shared.ts';
import { storeConformance } from './conformance/index.ts';
import type { OpenStore } from './conformance/world.ts';

const onFatal = (error: Error) => {
  throw error;
};

/** Making a database takes a tenth of a second, so one serves all cases of a suite, emptied when a case closes its store. */
function openShared(version: 14 | 18): OpenStore {
  let url: Promise<string> | undefined;
  let shared: Store | undefined;
  let cleaner: pg.Client | undefined;
  let count = 0;
  afterAll(async () => {
    await shared?.close();
    await cleaner?.end();
  });
  const empty = async (connectionString: string) => {
    cleaner ??= await connect(connectionString);
    const { rows } = await cleaner.query<{ tablename: string }>(
      "select tablename from pg_tables where schemaname = 'public' and tablename not in ('numbers', 'migrations')",
    );
    await cleaner.query(rows.map(({ tablename }) => `delete from ${tablename}`).join('; '));
  };
  return async (limits) => {
    url ??= freshDatabase(version);
    const connectionString = await url;
    count += 1;
    const open = () =>
      openPostgresStore({
        url: connectionString,
        listenUrl: '',
        clock: systemClock,
        onFatal,
        sender: `w${count}`,
        ...(limits && { limits }),
      });
    if (!limits) shared ??= await open();
    const store = (limits ? undefined : shared) ?? (await open());
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

async function connect(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  return client;
}

storeConformance('PostgreSQL 18', openShared(18));
storeConformance('PostgreSQL 14', openShared(14));
