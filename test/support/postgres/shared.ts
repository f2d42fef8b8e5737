/** How do all tests of a run share one PostgreSQL, that only starts if one of them asks for it? */
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

/** As `freshDatabase`, with the schema, and nothing in it. */
export async function migratedDatabase(version: PostgresVersion = 18): Promise<string> {
  const { url } = await ask<{ url: string }>(`migrated/${version}`);
  return url;
}

async function ask<T>(what: string): Promise<T> {
  const response = await fetch(`${inject('postgresStarterUrl')}/${what}`);
  if (!response.ok) throw new Error(`no PostgreSQL for this test: ${await response.text()}`);
  return (await response.json()) as T;
}
