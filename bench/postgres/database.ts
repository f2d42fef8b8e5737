/** The PostgreSQL of the benchmarks: the newest supported version with production settings, including full durability. */
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { type Cluster, startCluster } from '../../test/support/postgres/cluster.ts';
import type { Parties } from '../cpu.ts';

/** Usual settings for a small server; all other settings have their defaults. */
export const SETTINGS = {
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  shared_buffers: '512MB',
  effective_cache_size: '2GB',
  max_wal_size: '4GB',
  random_page_cost: '1.1',
  shared_preload_libraries: 'pg_stat_statements',
};

/** `settings` override the defaults above. */
export async function startDatabaseServer(settings: Readonly<Record<string, string>> = {}): Promise<Cluster> {
  const server = await startCluster({ version: 18, settings: { ...SETTINGS, ...settings } });
  await countStatements(server, 'none');
  return server;
}

/** Counting has a small cost, so it is enabled only on demand. Existing sessions switch with their next statement. */
export async function countStatements(server: Cluster, what: 'top' | 'none'): Promise<void> {
  await server.query(`alter system set pg_stat_statements.track = '${what}'`);
  await server.query('select pg_reload_conf()');
}

/** A database on a PostgreSQL server of its own, with the environment variables for a Waypost server. */
export interface Database {
  env: Record<string, string>;
  parties: Parties;
  end(): Promise<void>;
}

export async function startDatabase(): Promise<Database> {
  const server = await startDatabaseServer();
  const { name, url } = await freshDatabase(server);
  return {
    env: { DATABASE_URL: url, WAYPOST_ENCRYPTION_KEY: randomBytes(32).toString('base64') },
    parties: { PostgreSQL: [server.pid] },
    async end() {
      await dropDatabase(server, name).catch(() => {}); // sessions of a killed worker may still be open
      await server.dispose();
    },
  };
}

let databases = 0;

/** Creates a database, after flushing the pending writes of earlier databases. */
export async function freshDatabase(server: Cluster): Promise<{ name: string; url: string }> {
  const name = `bench_${++databases}`;
  const url = await server.createDatabase(name);
  await server.query('checkpoint');
  return { name, url };
}

/** Replaces the statistics of empty tables, as autovacuum does on a server that has run for a minute. */
export async function refreshStatistics(url: string): Promise<void> {
  await onDatabase(url, (client) => client.query('vacuum analyze'));
}

/** PostgreSQL waits up to five seconds for closing sessions. Terminating these sessions would crash their clients. */
export async function dropDatabase(server: Cluster, name: string): Promise<void> {
  await server.query(`drop database "${name}"`);
}

export async function onDatabase<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
