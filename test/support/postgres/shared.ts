/** How do all tests of a run share one PostgreSQL, that only starts if one of them asks for it? */
import pg from 'pg';
import { inject } from 'vitest';
import type { PostgresVersion } from './binaries.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Where the process that runs the tests starts clusters for them: test/support/postgres/global-setup.ts. */
    postgresStarterUrl: string;
  }
}

export interface SharedCluster {
  port: number;
  /** For the superuser, who needs no password. */
  url(database?: string): string;
}

/** The cluster that all tests of this run share, one a version. Nobody stops it, changes its settings or its roles. */
export async function sharedCluster(version: PostgresVersion = 18): Promise<SharedCluster> {
  const { port } = await ask<{ port: number }>(`cluster/${version}`);
  return { port, url: (database = 'postgres') => `postgres://postgres@127.0.0.1:${port}/${database}` };
}

/** The URL of a new, empty database, that nobody else uses. It goes with the cluster. */
export async function freshDatabase(version: PostgresVersion = 18): Promise<string> {
  const { url } = await ask<{ url: string }>(`database/${version}`);
  return url;
}

/** The URL of a copy of such a database, which nobody may use meanwhile. */
export async function copyOf(databaseUrl: string): Promise<string> {
  const { url } = await ask<{ url: string }>(`copy/18${new URL(databaseUrl).pathname}`);
  return url;
}

/** As `freshDatabase`, with the schema, and nothing in it. */
export async function migratedDatabase(version: PostgresVersion = 18): Promise<string> {
  const { url } = await ask<{ url: string }>(`migrated/${version}`);
  return url;
}

export interface BorrowedDatabase {
  url: string;
  /** Nobody uses it any more: it is emptied, for whoever asks next. */
  giveBack(): Promise<void>;
}

const givenBack: string[] = [];

/**
 * As `migratedDatabase`, of 18; but numbers go on where they were. For hundreds of tests: making a database takes longer than
 * most of them.
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
