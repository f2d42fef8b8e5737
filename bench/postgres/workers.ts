/**
 * Measures messages from publish to arrival through workers on one PostgreSQL: one worker compared with the null relay,
 * and two workers compared with one. Rounds alternate, each on a new database; the CPU times of all processes show which
 * process is the bottleneck.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Cluster } from '../../test/support/postgres/cluster.ts';
import { type ListeningProcess, startListening } from '../child-process.ts';
import { type CpuByParty, type Parties, startCpuMeter } from '../cpu.ts';
import { type LoadTarget, type Peers, publishAll, publishPaced } from '../load.ts';
import { type Receiver, startReceiver } from '../receiver-process.ts';
import { arrivalDelaysMs, median, quantile } from '../statistics.ts';
import { DEVELOPMENT_TOKEN, startWaypost } from '../waypost-process.ts';
import { dropDatabase, freshDatabase, refreshStatistics, startDatabaseServer } from './database.ts';
import { countWork, type DatabaseWork, SYNCS_PUBLISHED_AFTER_MS, waitForSettledMessages } from './statements.ts';

export type WorkersName = 'null relay' | 'one worker' | 'two processes' | 'two threads';

export interface Workload {
  peers: Peers;
  warmUpMessages: number;
  /** Messages of the burst. */
  messages: number;
  steadySeconds: number;
  limitMs: number;
}

export interface WorkersOptions extends Workload {
  rounds: number;
  contestants: readonly WorkersName[];
  /** Messages whose statements are counted, once, after the rounds. */
  countedMessages: number;
  /** Delay after which PostgreSQL's sessions have published their sync statistics. */
  syncsPublishedAfterMs: number;
  onRound?: (round: number, figures: WorkersFigures) => void;
}

export const DEFAULT_WORKERS = {
  rounds: 3,
  contestants: ['null relay', 'one worker', 'two processes', 'two threads'] as const,
  warmUpMessages: 10_000,
  messages: 30_000,
  steadySeconds: 5,
  countedMessages: 10_000,
  syncsPublishedAfterMs: SYNCS_PUBLISHED_AFTER_MS,
  limitMs: 120_000,
};

export interface WorkersFigures {
  contestant: string;
  /** From the first publish to the last arrival, with 64 concurrent publishes. */
  perSecond: number;
  publishP50Ms: number;
  publishP99Ms: number;
  /** At 500 messages per second. */
  arrivalP50Ms: number;
  arrivalP99Ms: number;
  /** Milliseconds of user and system time per 1,000 messages of the burst. */
  cpuMs: CpuByParty;
  /** The average number of busy cores in the burst. */
  coresBusy: number;
  missing: number;
  repeated: number;
}

export interface WorkersReport {
  figures: WorkersFigures[];
  /** The work of PostgreSQL for `countedMessages` messages through one worker. */
  work: DatabaseWork;
  countedMessages: number;
}

const RELAY = fileURLToPath(new URL('../null-relay.ts', import.meta.url));
const STEADY_PER_SECOND = 500;

export async function measureWorkers(options: WorkersOptions): Promise<WorkersReport> {
  const server = await startDatabaseServer();
  const receiver = await startReceiver(options.peers);
  try {
    const figures: WorkersFigures[] = [];
    for (let round = 1; round <= options.rounds; round += 1) {
      for (const name of options.contestants) {
        const measured = await withWorkers(name, server, (workers) => measure(workers, receiver, options));
        options.onRound?.(round, measured);
        figures.push(measured);
      }
    }
    const work = await withWorkers('one worker', server, (workers) => count(workers, server, receiver, options));
    const groups = [...Map.groupBy(figures, ({ contestant }) => contestant).values()];
    return { figures: groups.map(medians), work, countedMessages: options.countedMessages };
  } finally {
    await receiver.end();
    await server.dispose();
  }
}

/** Running processes that accept messages, with their database. */
export interface Workers {
  name: string;
  processes: readonly [ListeningProcess, ...ListeningProcess[]];
  parties: Parties;
  /** Absent for the relay. */
  databaseUrl?: string;
}

async function withWorkers<T>(name: WorkersName, server: Cluster, use: (workers: Workers) => Promise<T>): Promise<T> {
  if (name === 'null relay') return withRelay(use);
  const database = await freshDatabase(server);
  const folder = mkdtempSync(join(tmpdir(), 'waypost-workers-'));
  const env = { DATABASE_URL: database.url, WAYPOST_ENCRYPTION_KEY: randomBytes(32).toString('base64') };
  const start = (number: number, flags: string[]) =>
    startWaypost({ dataDir: join(folder, String(number)), env, flags });
  const first = await start(1, name === 'two threads' ? ['--workers', '2'] : []);
  const processes: [ListeningProcess, ...ListeningProcess[]] = [first];
  try {
    if (name === 'two processes') processes.push(await start(2, []));
    const parties = { Waypost: processes.map(({ pid }) => pid), PostgreSQL: [server.pid] };
    return await use({ name, processes, parties, databaseUrl: database.url });
  } finally {
    await Promise.all(processes.map((each) => each.end('SIGTERM')));
    await dropDatabase(server, database.name);
    rmSync(folder, { recursive: true, force: true });
  }
}

async function withRelay<T>(use: (workers: Workers) => Promise<T>): Promise<T> {
  const relay = await startListening([RELAY]);
  try {
    return await use({ name: 'null relay', processes: [relay], parties: { relay: [relay.pid] } });
  } finally {
    await relay.end('SIGTERM');
  }
}

export async function measure(workers: Workers, receiver: Receiver, options: Workload): Promise<WorkersFigures> {
  const target = targetOf(workers, receiver, options);
  await warmUp(workers, receiver, options);

  await receiver.expect(options.messages);
  const parties = { ...workers.parties, publisher: [process.pid], endpoint: [receiver.pid] };
  const cpu = startCpuMeter(parties);
  const burst = await publishAll(target, options.messages);
  await receiver.complete(options.limitMs);
  const used = cpu.read();
  const arrived = await receiver.report();
  const seconds = Number(arrived.lastArrivalNs - burst.startedNs) / 1e9;

  const steadyMessages = STEADY_PER_SECOND * options.steadySeconds;
  await receiver.expect(steadyMessages);
  const steady = await publishPaced(target, steadyMessages, STEADY_PER_SECOND);
  await receiver.complete(options.limitMs);
  const steadyArrived = await receiver.report();
  const delaysMs = arrivalDelaysMs(steady.sentNs, steadyArrived.arrivalsNs);

  const cpuMs = Object.entries(used).map(([party, spent]) => [party, (spent * 1e6) / options.messages]);
  return {
    contestant: workers.name,
    perSecond: options.messages / seconds,
    publishP50Ms: quantile(burst.publishMs, 0.5),
    publishP99Ms: quantile(burst.publishMs, 0.99),
    arrivalP50Ms: quantile(delaysMs, 0.5),
    arrivalP99Ms: quantile(delaysMs, 0.99),
    cpuMs: Object.fromEntries(cpuMs) as CpuByParty,
    coresBusy: Object.values(used).reduce((sum, spent) => sum + spent, 0) / seconds,
    missing: options.messages - arrived.distinct + (steadyMessages - steadyArrived.distinct),
    repeated: arrived.repeated + steadyArrived.repeated,
  };
}

async function count(
  workers: Workers,
  server: Cluster,
  receiver: Receiver,
  options: WorkersOptions,
): Promise<DatabaseWork> {
  await warmUp(workers, receiver, options);
  const url = workers.databaseUrl ?? '';
  return countWork(server, url, options.syncsPublishedAfterMs, async () => {
    await receiver.expect(options.countedMessages);
    await publishAll(targetOf(workers, receiver, options), options.countedMessages);
    if (!(await receiver.complete(options.limitMs))) throw new Error('not all messages arrived');
    await waitForSettledMessages(url);
  });
}

/** Compiles code, opens connections, prepares statements, and replaces the statistics of empty tables. */
async function warmUp(workers: Workers, receiver: Receiver, options: Workload): Promise<void> {
  await receiver.expect(options.warmUpMessages);
  await publishAll(targetOf(workers, receiver, options), options.warmUpMessages);
  if (!(await receiver.complete(options.limitMs))) {
    const output = workers.processes.map((each) => each.output()).join('\n');
    throw new Error(`the warm-up was not delivered; output of the workers:\n${output}`);
  }
  if (workers.databaseUrl !== undefined) await refreshStatistics(workers.databaseUrl);
}

function targetOf({ processes: [first, ...others] }: Workers, receiver: Receiver, options: Workload): LoadTarget {
  return {
    peers: options.peers,
    url: first.url,
    otherUrls: others.map(({ url }) => url),
    token: DEVELOPMENT_TOKEN,
    destination: `${receiver.url}/`,
  };
}

/** Missing and repeated messages are summed, since a single lost message matters. */
export function medians(rounds: WorkersFigures[]): WorkersFigures {
  const [first] = rounds;
  if (first === undefined) throw new Error('a comparison needs at least one round');
  const middle = (value: (round: WorkersFigures) => number) => median(rounds.map(value));
  const cpuMs = Object.keys(first.cpuMs).map((party) => [party, middle((round) => round.cpuMs[party] ?? 0)]);
  return {
    contestant: first.contestant,
    perSecond: middle((round) => round.perSecond),
    publishP50Ms: middle((round) => round.publishP50Ms),
    publishP99Ms: middle((round) => round.publishP99Ms),
    arrivalP50Ms: middle((round) => round.arrivalP50Ms),
    arrivalP99Ms: middle((round) => round.arrivalP99Ms),
    cpuMs: Object.fromEntries(cpuMs) as CpuByParty,
    coresBusy: middle((round) => round.coresBusy),
    missing: rounds.reduce((sum, { missing }) => sum + missing, 0),
    repeated: rounds.reduce((sum, { repeated }) => sum + repeated, 0),
  };
}
