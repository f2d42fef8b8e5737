/** The PostgreSQL of the benchmarks: the newest supported one, as it is run in production: nothing answered is ever lost. */
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { type Cluster, startCluster } from '../../test/support/postgres/cluster.ts';
import type { Parties } from '../cpu.ts';

/** What a server with this much memory is usually given; the rest is as it comes. */
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

/** `settings` come on top. */
export async function startDatabaseServer(settings: Readonly<Record<string, string>> = {}): Promise<Cluster> {
  const server = await startCluster({ version: 18, settings: { ...SETTINGS, ...settings } });
  await countStatements(server, 'none');
  return server;
}

/** Counting costs a little: only when it is asked for. Sessions that exist follow at their next statement. */
export async function countStatements(server: Cluster, what: 'top' | 'none'): Promise<void> {
  await server.query(`alter system set pg_stat_statements.track = '${what}'`);
  await server.query('select pg_reload_conf()');
}

/** One database of a PostgreSQL of its own, and what a server is told to use it. */
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
      await dropDatabase(server, name).catch(() => {}); // the sessions of a killed worker may still be there
      await server.dispose();
    },
  };
}

let databases = 0;

/** A new database, with what is left to write of those before it written. */
export async function freshDatabase(server: Cluster): Promise<{ name: string; url: string }> {
  const name = `bench_${++databases}`;
  const url = await server.createDatabase(name);
  await server.query('checkpoint');
  return { name, url };
}

/** So that nobody is measured with statistics of empty tables: a server that runs for a minute has better ones. */
export async function refreshStatistics(url: string): Promise<void> {
  await onDatabase(url, (client) => client.query('vacuum analyze'));
}

/** Sessions that are about to end are waited for, for five seconds; ended by force, they would end their process as well. */
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
