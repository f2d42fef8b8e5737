/**
 * Measures the cost of a message with one, two and four workers in a process, at rates that are easy for one worker, so that the
 * machine is never the bottleneck. Each number of workers has its own database.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import type { Cluster } from '../test/support/postgres/cluster.ts';
import type { ListeningProcess } from './child-process.ts';
import { type Parties, startCpuMeter } from './cpu.ts';
import { publishAll, publishPaced } from './load.ts';
import { metricsUrlIn } from './metrics.ts';
import { dropDatabase, freshDatabase, refreshStatistics, startDatabaseServer } from './postgres/database.ts';
import { type Receiver, startReceiver } from './receiver-process.ts';
import { arrivalDelaysMs, median, quantile } from './statistics.ts';
import { table } from './table.ts';
import { DEVELOPMENT_TOKEN, startWaypost } from './waypost-process.ts';

export type Database = 'SQLite' | 'PostgreSQL';

export interface CostOptions {
  databases: readonly Database[];
  /** Numbers of workers, alternating, each in one process. */
  workers: readonly number[];
  /** Messages per second; 0: as fast as 64 connections can publish, one request at a time on each. */
  rates: readonly number[];
  rounds: number;
  /** Duration at each rate. */
  seconds: number;
  /** Messages of a burst, which has no fixed rate. */
  burstMessages: number;
  /** Messages per worker, since each worker compiles its own code. */
  warmUpMessages: number;
  limitMs: number;
  onFigures?: (figures: CostFigures) => void;
}

export const DEFAULT_COST = {
  ...{ databases: ['SQLite', 'PostgreSQL'] as const, workers: [1, 2, 4], rates: [400], rounds: 3 },
  ...{ seconds: 8, burstMessages: 15_000, warmUpMessages: 6_000, limitMs: 60_000 },
};

/** Figures per 1,000 messages. */
export interface CostFigures {
  database: Database;
  workers: number;
  /** The requested rate. */
  perSecond: number;
  /** From the first publish to the last arrival. */
  deliveredPerSecond: number;
  waypostCpuMs: number;
  /** CPU time of the publisher and the receiver. */
  loadCpuMs: number;
  /** 0 with an embedded database. */
  postgresCpuMs: number;
  /** Batches that the workers committed. Batches of an embedded database may share a transaction. */
  batches: number;
  commandsPerBatch: number;
  arrivalP50Ms: number;
  arrivalP99Ms: number;
  missing: number;
}

export async function measureMessageCost(options: CostOptions): Promise<CostFigures[]> {
  const receiver = await startReceiver('ordinary');
  const server = options.databases.includes('PostgreSQL') ? await startDatabaseServer() : undefined;
  try {
    const all: CostFigures[] = [];
    for (let round = 1; round <= options.rounds; round += 1) {
      for (const database of options.databases) {
        for (const workers of options.workers) {
          const measured = await measureOne({ database, workers, server, receiver }, options);
          for (const figures of measured) options.onFigures?.(figures);
          all.push(...measured);
        }
      }
    }
    const groups = Map.groupBy(all, ({ database, workers, perSecond }) => `${database} ${workers} ${perSecond}`);
    return [...groups.values()].map(medians);
  } finally {
    await receiver.end();
    await server?.dispose();
  }
}

interface Setup {
  database: Database;
  workers: number;
  server: Cluster | undefined;
  receiver: Receiver;
}

async function measureOne(setup: Setup, options: CostOptions): Promise<CostFigures[]> {
  const { database, workers, receiver } = setup;
  const folder = mkdtempSync(join(tmpdir(), 'waypost-cost-'));
  const server = database === 'PostgreSQL' ? setup.server : undefined;
  const created = server && (await freshDatabase(server));
  const env = created && { DATABASE_URL: created.url, WAYPOST_ENCRYPTION_KEY: randomBytes(32).toString('base64') };
  const flags = ['--workers', String(workers), '--metrics-address', '0'];
  const waypost = await startWaypost({ dataDir: folder, flags, ...(env && { env }) });
  try {
    const target = {
      ...{ peers: 'ordinary' as const, url: waypost.url, token: DEVELOPMENT_TOKEN },
      destination: `${receiver.url}/`,
    };
    const warmUpMessages = options.warmUpMessages * workers;
    await receiver.expect(warmUpMessages);
    await publishAll(target, warmUpMessages);
    if (!(await receiver.complete(options.limitMs))) throw new Error('the warm-up was not delivered');
    if (created) await refreshStatistics(created.url);
    const load = [process.pid, receiver.pid];
    const parties: Parties = { waypost: [waypost.pid], load, ...(server && { postgres: [server.pid] }) };
    const figures: CostFigures[] = [];
    for (const perSecond of options.rates) {
      const messages = perSecond === 0 ? options.burstMessages : perSecond * options.seconds;
      await receiver.expect(messages);
      const before = await readBatches(waypost);
      const cpu = startCpuMeter(parties);
      const { sentNs, startedNs } =
        perSecond === 0 ? await publishAll(target, messages) : await publishPaced(target, messages, perSecond);
      await receiver.complete(options.limitMs);
      await sleep(SETTLED_MS);
      const { waypost: waypostSeconds = 0, load: loadSeconds = 0, postgres: postgresSeconds = 0 } = cpu.read();
      const after = await readBatches(waypost);
      const { distinct, arrivalsNs, lastArrivalNs } = await receiver.report();
      const delaysMs = arrivalDelaysMs(sentNs, arrivalsNs);
      const batches = after.batches - before.batches;
      figures.push({
        ...{ database, workers, perSecond },
        deliveredPerSecond: messages / (Number(lastArrivalNs - startedNs) / 1e9),
        waypostCpuMs: (waypostSeconds * 1e6) / messages,
        loadCpuMs: (loadSeconds * 1e6) / messages,
        postgresCpuMs: (postgresSeconds * 1e6) / messages,
        batches: (batches * 1_000) / messages,
        commandsPerBatch: (after.commands - before.commands) / batches,
        arrivalP50Ms: quantile(delaysMs, 0.5),
        arrivalP99Ms: quantile(delaysMs, 0.99),
        missing: messages - distinct,
      });
    }
    return figures;
  } finally {
    await waypost.end('SIGTERM');
    if (server && created) await dropDatabase(server, created.name);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Time after the last arrival for its outcome to be saved. */
const SETTLED_MS = 100;

/** Totals of all workers since the start of the server. */
async function readBatches(waypost: ListeningProcess): Promise<{ batches: number; commands: number }> {
  const response = await request(metricsUrlIn(waypost.output()));
  const text = await response.body.text();
  const read = (name: string) => {
    const value = new RegExp(`^waypost_commit_batch_commands_${name} (\\S+)$`, 'm').exec(text)?.[1];
    if (value === undefined) throw new Error(`the metrics have no ${name} of batches`);
    return Number(value);
  };
  return { batches: read('count'), commands: read('sum') };
}

function medians(rounds: CostFigures[]): CostFigures {
  const [first] = rounds;
  if (first === undefined) throw new Error('at least one round is needed');
  const figure = (name: Exclude<keyof CostFigures, 'database'>) => median(rounds.map((round) => round[name]));
  return {
    ...{ database: first.database, workers: first.workers, perSecond: first.perSecond },
    deliveredPerSecond: figure('deliveredPerSecond'),
    waypostCpuMs: figure('waypostCpuMs'),
    loadCpuMs: figure('loadCpuMs'),
    postgresCpuMs: figure('postgresCpuMs'),
    batches: figure('batches'),
    commandsPerBatch: figure('commandsPerBatch'),
    arrivalP50Ms: figure('arrivalP50Ms'),
    arrivalP99Ms: figure('arrivalP99Ms'),
    missing: rounds.reduce((sum, { missing }) => sum + missing, 0),
  };
}

/** The progress line of one measurement. */
export function costLine(figures: CostFigures): string {
  const { database, workers, batches, missing } = figures;
  const lost = missing === 0 ? '' : `, ${missing} MISSING`;
  return `${database}, ${workers} workers, ${rateOf(figures)}: CPU ${cpuMsOf(figures).toFixed(0)} ms, ${batches.toFixed(0)} batches${lost}`;
}

export function costTable(figures: readonly CostFigures[]): string {
  const rows = figures.map((each) => {
    const { database, perSecond, workers, waypostCpuMs, postgresCpuMs, batches, commandsPerBatch, missing } = each;
    const one = figures.find(
      (other) => other.workers === 1 && other.database === database && other.perSecond === perSecond,
    );
    return [
      `${database}, ${rateOf(each)}, ${workers} workers`,
      ...[waypostCpuMs, postgresCpuMs, cpuMsOf(each)].map((ms) => ms.toFixed(0)),
      one ? (cpuMsOf(each) / cpuMsOf(one)).toFixed(2) : '-',
      batches.toFixed(0),
      commandsPerBatch.toFixed(2),
      each.arrivalP50Ms.toFixed(1),
      each.arrivalP99Ms.toFixed(1),
      String(missing),
    ];
  });
  const columns = ['', 'Waypost CPU ms', 'PostgreSQL', 'both', 'ratio to one worker', 'batches', 'commands per batch'];
  return table('per 1,000 messages', [...columns, 'arrival p50 ms', 'p99 ms', 'missing'], rows);
}

function rateOf({ perSecond, deliveredPerSecond }: CostFigures): string {
  return perSecond === 0 ? `a burst, ${deliveredPerSecond.toFixed(0)}/s` : `${perSecond}/s`;
}

function cpuMsOf({ waypostCpuMs, postgresCpuMs }: CostFigures): number {
  return waypostCpuMs + postgresCpuMs;
}
