/** Gives tests databases on a shared PostgreSQL server, which is started on the first request. */
import pg from 'pg';
import { inject } from 'vitest';
import type { PostgresVersion } from './binaries.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The URL at which the main process of the test run starts clusters: test/support/postgres/global-setup.ts. */
    postgresStarterUrl: string;
  }
}

export interface SharedCluster {
  port: number;
  /** The URL of a database for the superuser, who needs no password. */
  url(database?: string): string;
}

/** The cluster that all tests of this run share, one per version. Tests must not stop it or change its settings or roles. */
export async function sharedCluster(version: PostgresVersion = 18): Promise<SharedCluster> {
  const { port } = await ask<{ port: number }>(`cluster/${version}`);
  return { port, url: (database = 'postgres') => `postgres://postgres@127.0.0.1:${port}/${database}` };
}

/** The URL of a new, empty database for one test. The database is removed with the cluster. */
export async function freshDatabase(version: PostgresVersion = 18): Promise<string> {
  const { url } = await ask<{ url: string }>(`database/${version}`);
  return url;
}

/** The URL of a copy of a database of version 18. The original must have no connections. */
export async function copyOf(databaseUrl: string): Promise<string> {
  const { url } = await ask<{ url: string }>(`copy/18${new URL(databaseUrl).pathname}`);
  return url;
}

/** Like `freshDatabase`, with the schema and without rows. */
export async function migratedDatabase(version: PostgresVersion = 18): Promise<string> {
  const { url } = await ask<{ url: string }>(`migrated/${version}`);
  return url;
}

export interface BorrowedDatabase {
  url: string;
  /** Empties the database and makes it available for another test. */
  giveBack(): Promise<void>;
}

const givenBack: string[] = [];

/**
 * Like `migratedDatabase` of version 18, but reused, so that row numbers do not start at 1. Intended for hundreds of
 * tests: creating a database takes longer than most tests.
 */
export async function borrowDatabase(): Promise<BorrowedDatabase> {
  const url = givenBack.pop() ?? (await migratedDatabase());
  return {
    url,
    giveBack: async () => {
      await emptyDatabase(url);
      givenBack.push(url);
    },
  };
}

async function emptyDatabase(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ tablename: string }>(
    "select tablename from pg_tables where schemaname = 'public' and tablename not in ('numbers', 'migrations', 'log_expiry')",
  );
  await client.query(rows.map(({ tablename }) => `delete from ${tablename}`).join('; '));
  await client.end();
}

async function ask<T>(what: string): Promise<T> {
  const response = await fetch(`${inject('postgresStarterUrl')}/${what}`);
  if (!response.ok) throw new Error(`no PostgreSQL for this test: ${await response.text()}`);
  return (await response.json()) as T;
}
