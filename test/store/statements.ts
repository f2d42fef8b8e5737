/** Collects the statements of each operation of the store, by running all of them once on SQLite in memory. */
import { createStore } from '../../src/store/create.ts';
import type { SqlParam } from '../../src/store/driver.ts';
import { SqliteDriver } from '../../src/store/drivers/sqlite/driver.ts';
import { migrate } from '../../src/store/migrations/index.ts';
import { toPostgres } from '../../src/store/sql/postgres.ts';
import type { Store } from '../../src/store/store.ts';
import { World } from './conformance/world.ts';
import { RecordingDriver } from './recording-driver.ts';
import { useAccounts, useCells } from './use-accounts.ts';
import { useEverything } from './use-everything.ts';

const LIMITS = { queuesMax: 5, parallelismMax: 5, messagesPerDayMax: 1_000, journalBytesMax: 0 };

/**
 * By operation, the statements as PostgreSQL gets them, with the values of their first run in them. Not those of
 * `insertMany` and `updateMany`, whose rows are sent as arrays.
 */
export async function statementsByOperation(): Promise<Map<string, Set<string>>> {
  // With many writers, the statements that lock rows against other transactions are sent too.
  const driver = new RecordingDriver(new SqliteDriver({ path: ':memory:' }), { manyWriters: true });
  await migrate(driver);
  const found = new Map<string, Set<string>>();
  const watch = (noun: object) =>
    new Proxy(noun, {
      get: (operations, name: string) => {
        const operation: (...given: unknown[]) => Promise<unknown> = Reflect.get(operations, name);
        return async (...given: unknown[]) => {
          driver.params.clear();
          const result = await operation(...given);
          const statements = [...driver.params].map(([text, params]) => withValues(toPostgres(text), params));
          found.set(name, new Set([...(found.get(name) ?? []), ...statements]));
          return result;
        };
      },
    });
  const watched = (store: Store): Store =>
    new Proxy(store, {
      get: (nouns, noun) => {
        const member: unknown = Reflect.get(nouns, noun);
        if (noun === 'ping') return Reflect.get(watch(nouns), noun);
        return typeof member === 'object' && member !== null ? watch(member) : member;
      },
    });
  const world = await World.open(async () => watched(createStore(driver, { limits: LIMITS })));
  await useEverything(world);
  await useAccounts(world);
  await useCells(world);
  await world.store.close();
  return found;
}

function withValues(text: string, params: readonly SqlParam[]): string {
  const lines = text.replaceAll(/\$(\d+)/g, (_, nth) => literal(params[Number(nth) - 1] ?? null)).split('\n');
  return lines.map((line, nth) => `${nth === 0 ? '' : '  '}${line.trim()}`).join('\n');
}

function literal(param: SqlParam): string {
  if (param === null || typeof param === 'number') return String(param);
  if (Array.isArray(param)) return quoted(`{${param.map((each) => JSON.stringify(each)).join(',')}}`);
  return quoted(param instanceof Uint8Array ? `\\x${Buffer.from(param).toString('hex')}` : String(param));
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
