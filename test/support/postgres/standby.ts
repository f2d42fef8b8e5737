/** Starts a PostgreSQL server with a standby that replicates it and can be promoted. */
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
  /** Whether a commit returns when both the standby and the primary, instead of the primary alone, have it on disk. */
  synchronous: boolean;
  /** Settings of both servers. */
  settings?: Readonly<Record<string, string>>;
}

export interface Pair {
  primary: Cluster;
  standby: Cluster;
  /** The proxy between the servers, which delays, stalls or cuts the replication stream. */
  link: TcpProxy;
  /** Promotes the standby; resolves when the new primary accepts writes, whose commits wait for no standby. */
  promote(): Promise<void>;
  dispose(): Promise<void>;
}

const NAME = 'standby';

/** Resolves when the standby replicates. Both servers use fsync, since tests kill the servers. */
export async function startPair({ version = 18, synchronous, settings = {} }: StandbyOptions): Promise<Pair> {
  // A standby without a primary retries at this interval (default: 5 s), and a promotion waits for the end of the interval.
  const both = { fsync: 'on', wal_retrieve_retry_interval: '50ms', ...settings };
  const primary = await startCluster({ version, settings: both });
  const link = await TcpProxy.open(primary.port);
  const dispose = async (...clusters: Cluster[]) => {
    await link.close();
    await Promise.all(clusters.map((cluster) => cluster.dispose()));
  };
  try {
    // Copying a new cluster is fastest while the cluster is stopped.
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

/** Copies the folder and its owner, since PostgreSQL requires the same owner. */
function copy(from: string, to: string): void {
  const { status, stderr } = spawnSync('cp', ['-a', from, to], { ...RUN_AS, encoding: 'utf8' });
  if (status !== 0) throw new Error(`cp ended with ${status}: ${stderr}`);
}
