/**
 * Checks that a worker on PostgreSQL stays stable under a steady rate. Reports for each minute the latency, the sizes of
 * tables and indexes, and the dead rows that vacuum has not removed yet. Logs have a short retention, so that their removal is
 * part of the measurement.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { residentMebibytes } from '../child-process.ts';
import { startCpuMeter } from '../cpu.ts';
import { publishPaced } from '../load.ts';
import { startReceiver } from '../receiver-process.ts';
import { arrivalDelaysMs, median, quantile } from '../statistics.ts';
import { DEVELOPMENT_TOKEN, startWaypost } from '../waypost-process.ts';
import { freshDatabase, onDatabase, startDatabaseServer } from './database.ts';

export interface SustainedOptions {
  minutes: number;
  perSecond: number;
  /** Duration of each measured interval: a minute, except in tests. */
  intervalSeconds: number;
  onInterval?: (interval: SustainedInterval) => void;
}

export const DEFAULT_SUSTAINED = { perSecond: 1_000, intervalSeconds: 60 };

export interface SustainedInterval {
  /** Seconds from the first publish to the end of the interval. */
  seconds: number;
  arrivalP50Ms: number;
  arrivalP99Ms: number;
  missing: number;
  repeated: number;
  /** Percent of one core. */
  waypostCpuPercent: number;
  postgresCpuPercent: number;
  residentMebibytes: number;
  tables: TableSize[];
}

export interface TableSize {
  name: string;
  tableMebibytes: number;
  indexMebibytes: number;
  deadRows: number;
}

export interface SustainedReport {
  intervals: SustainedInterval[];
  /**
   * Median p99 of the last third of the intervals, divided by the median of the first third, without the very first
   * interval.
   */
  p99Drift: number;
}

const LOG_RETENTION = '5m';
const RETENTION_INTERVAL = '15s';
const ARRIVAL_LIMIT_MS = 30_000;

export async function measureSustained(options: SustainedOptions): Promise<SustainedReport> {
  const server = await startDatabaseServer();
  const receiver = await startReceiver('ordinary');
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-sustained-'));
  try {
    const { url } = await freshDatabase(server);
    const env = { DATABASE_URL: url, WAYPOST_ENCRYPTION_KEY: randomBytes(32).toString('base64') };
    const flags = ['--log-retention', LOG_RETENTION, '--retention-interval', RETENTION_INTERVAL];
    const waypost = await startWaypost({ dataDir, env, flags });
    try {
      const target = {
        ...{ peers: 'ordinary' as const, url: waypost.url, token: DEVELOPMENT_TOKEN },
        destination: `${receiver.url}/`,
      };
      const intervals: SustainedInterval[] = [];
      const startedMs = performance.now();
      const messages = options.perSecond * options.intervalSeconds;
      while (intervals.length * options.intervalSeconds < options.minutes * 60) {
        const cpu = startCpuMeter({ waypost: [waypost.pid], postgres: [server.pid] });
        const intervalStartedMs = performance.now();
        await receiver.expect(messages);
        const { sentNs } = await publishPaced(target, messages, options.perSecond);
        await receiver.complete(ARRIVAL_LIMIT_MS);
        const { distinct, repeated, arrivalsNs } = await receiver.report();
        const percent = 100_000 / (performance.now() - intervalStartedMs);
        const { waypost: waypostSeconds = 0, postgres: postgresSeconds = 0 } = cpu.read();
        const delaysMs = arrivalDelaysMs(sentNs, arrivalsNs);
        const interval = {
          seconds: (performance.now() - startedMs) / 1_000,
          arrivalP50Ms: quantile(delaysMs, 0.5),
          arrivalP99Ms: quantile(delaysMs, 0.99),
          missing: messages - distinct,
          repeated,
          waypostCpuPercent: waypostSeconds * percent,
          postgresCpuPercent: postgresSeconds * percent,
          residentMebibytes: residentMebibytes(waypost.pid),
          tables: await tableSizes(url),
        };
        intervals.push(interval);
        options.onInterval?.(interval);
      }
      return { intervals, p99Drift: drift(intervals.map(({ arrivalP99Ms }) => arrivalP99Ms)) };
    } finally {
      await waypost.end('SIGTERM');
    }
  } finally {
    await receiver.end();
    await server.dispose();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** The size of a partition is added to the size of its table. Empty tables are omitted. */
async function tableSizes(url: string): Promise<TableSize[]> {
  return onDatabase(url, async (client) => {
    const { rows } = await client.query<Record<keyof TableSize, string>>(`
      select coalesce(p.relname, c.relname) as name,
        sum(pg_table_size(c.oid)) / 1048576 as "tableMebibytes", sum(pg_indexes_size(c.oid)) / 1048576 as "indexMebibytes",
        sum(s.n_dead_tup) as "deadRows"
      from pg_class c join pg_stat_user_tables s on s.relid = c.oid
        left join pg_inherits i on i.inhrelid = c.oid left join pg_class p on p.oid = i.inhparent
      where c.relkind = 'r'
      group by 1 having sum(pg_relation_size(c.oid)) > 0
      order by sum(pg_total_relation_size(c.oid)) desc`);
    return rows.map(({ name, tableMebibytes, indexMebibytes, deadRows }) => ({
      name,
      tableMebibytes: Number(tableMebibytes),
      indexMebibytes: Number(indexMebibytes),
      deadRows: Number(deadRows),
    }));
  });
}

/** The first interval is ignored, because caches are cold and code is not compiled. */
export function drift(valuesMs: readonly number[]): number {
  const third = Math.max(1, Math.floor(valuesMs.length / 3));
  const warm = valuesMs.length > 1 ? valuesMs.slice(1) : valuesMs;
  return median(valuesMs.slice(-third)) / median(warm.slice(0, third));
}
