/** How does a test get a PostgreSQL with a standby that follows it and can take its place? */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../eventually.ts';
import { TcpProxy } from '../tcp-proxy.ts';
import { type PostgresVersion, RUN_AS } from './binaries.ts';
import { type Cluster, makeFolder, startCluster } from './cluster.ts';

export interface StandbyOptions {
  /** Default 18. */
  version?: PostgresVersion;
  /** True: a commit is answered once the standby has it on disk too. False: as soon as the primary has. */
  synchronous: boolean;
  /** Settings of both. */
  settings?: Readonly<Record<string, string>>;
}

export interface Pair {
  primary: Cluster;
  standby: Cluster;
  /** What lies between the two: it delays, stalls or cuts the stream. */
  link: TcpProxy;
  /** Makes the standby a primary of its own; resolves when it takes writes. It waits for no other standby. */
  promote(): Promise<void>;
  dispose(): Promise<void>;
}

const NAME = 'standby';

/** Resolves when the standby follows. Both write to disk for certain, since they are made to be killed. */
export async function startPair({ version = 18, synchronous, settings = {} }: StandbyOptions): Promise<Pair> {
  // A standby whose primary is gone tries again only so often, and a promotion waits for the end of the pause: 5 s.
  const both = { fsync: 'on', wal_retrieve_retry_interval: '50ms', ...settings };
  const primary = await startCluster({ version, settings: both });
  const link = await TcpProxy.open(primary.port);
  const dispose = async (...clusters: Cluster[]) => {
    await link.close();
    await Promise.all(clusters.map((cluster) => cluster.dispose()));
  };
  try {
    // A new cluster is copied fastest while it is down.
    const folder = makeFolder({ onDisk: true });
    const dataDir = join(folder, 'data');
    await primary.stop();
    copy(primary.dataDir, dataDir);
    await primary.start();
    const source = `host=127.0.0.1 port=${link.port} user=postgres application_name=${NAME}`;
    writeFileSync(join(dataDir, 'standby.signal'), '');
    writeFileSync(join(dataDir, 'postgresql.auto.conf'), `primary_conninfo = '${source}'\n`);
    const standby = await startCluster({ version, settings: both, folder, dataDir });
    if (synchronous) {
      await primary.query(`alter system set synchronous_standby_names = '${NAME}'`);
      await primary.query('select pg_reload_conf()');
    }
    await eventually('the standby to follow', () => isFollowed(primary, synchronous));
    return {
      primary,
      standby,
      link,
      promote: async () => void (await standby.query('select pg_promote()')),
      dispose: () => dispose(primary, standby),
    };
  } catch (error) {
    await dispose(primary);
    throw error;
  }
}

async function isFollowed(primary: Cluster, synchronous: boolean): Promise<boolean> {
  const [row] = await primary.query('select state, sync_state from pg_stat_replication');
  return row?.['state'] === 'streaming' && row['sync_state'] === (synchronous ? 'sync' : 'async');
}

/** With the owner that it has: PostgreSQL takes no other. */
function copy(from: string, to: string): void {
  const { status, stderr } = spawnSync('cp', ['-a', from, to], { ...RUN_AS, encoding: 'utf8' });
  if (status !== 0) throw new Error(`cp ended with ${status}: ${stderr}`);
}
