/**
 * Measures how an unavailable cell affects the projects of other cells. Each of three PostgreSQL servers has one cell;
 * the first server also has the directory. The projects of two cells publish at a steady rate while the server of the
 * third cell is killed or hangs, alternating with rounds in which all servers are available. The third cell's project
 * keeps sending requests.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import type { Cluster } from '../test/support/postgres/cluster.ts';
import { waitForAllCells } from './cells.ts';
import type { ListeningProcess } from './child-process.ts';
import { type LoadTarget, publishAll, publishPaced } from './load.ts';
import { freshDatabase, onDatabase, refreshStatistics, startDatabaseServer } from './postgres/database.ts';
import { createProjects, runCommand } from './projects.ts';
import { type Receiver, startReceiver } from './receiver-process.ts';
import { arrivalDelaysMs, median, quantile } from './statistics.ts';
import { table } from './table.ts';
import { startWaypost } from './waypost-process.ts';

export interface CellsAwayOptions {
  /** Processes. */
  workers: number;
  rounds: number;
  /** Duration of each state in a round. */
  seconds: number;
  /** Messages per second of the projects in the available cells. */
  perSecond: number;
  warmUpMessages: number;
  limitMs: number;
  onFigures?: (figures: AwayFigures) => void;
}

export const DEFAULT_CELLS_AWAY = {
  ...{ workers: 1, rounds: 2, seconds: 9, perSecond: 140, warmUpMessages: 6_000, limitMs: 60_000 },
};

type AffectedPart = 'a cell' | 'the directory';
type State = 'available' | 'killed' | 'hangs';

/** Figures of the projects in the other cells. */
export interface AwayFigures {
  part: AffectedPart;
  state: State;
  publishP50Ms: number;
  publishP99Ms: number;
  publishMaxMs: number;
  arrivalP50Ms: number;
  arrivalP99Ms: number;
  missing: number;
  /** Responses to the project of the affected cell. */
  accepted: number;
  rejected: number;
}

/** The functions that start and end each state. */
const STATES: Readonly<
  Record<State, { interrupt: (server: Cluster) => unknown; restore: (server: Cluster) => unknown }>
> = {
  available: { interrupt: () => {}, restore: () => {} },
  killed: { interrupt: (server) => server.kill(), restore: (server) => server.start() },
  hangs: { interrupt: (server) => server.freeze(), restore: (server) => server.thaw() },
};

/** Shorter than the default, so that a hanging server is detected, and retried, during the measurement. */
const DATABASE_TIMEOUT = '3s';
/** Publishes of the first second are not counted: opening all connections at once distorts the p99. */
const CONNECT_MS = 1_000;
/** Time for lost sessions to be replaced, and for delayed messages to be delivered. */
const RECOVERY_MS = 2_000;
const SERVERS = 3;

/** A cell with a database server of its own. */
interface CellServer {
  server: Cluster;
  databaseUrl: string;
  token: string;
}

interface Installation {
  cells: readonly CellServer[];
  workers: readonly ListeningProcess[];
  receiver: Receiver;
}

export async function measureCellsAway(options: CellsAwayOptions): Promise<AwayFigures[]> {
  const all: AwayFigures[] = [];
  await withInstallation(options, async (installation) => {
    const destination = `${installation.receiver.url}/`;
    await installation.receiver.expect(options.warmUpMessages);
    await publishAll(targetOf(installation, installation.cells, destination), options.warmUpMessages);
    if (!(await installation.receiver.complete(options.limitMs))) throw new Error('the warm-up was not delivered');
    for (const { databaseUrl } of installation.cells) await refreshStatistics(databaseUrl);
    const [first, second] = installation.cells as [CellServer, CellServer];
    for (let round = 1; round <= options.rounds; round += 1) {
      for (const [part, cell] of [
        ['a cell', second],
        ['the directory', first],
      ] as const) {
        for (const state of ['available', 'killed', 'hangs'] as const) {
          const figures = { part, state, ...(await measureState(installation, { cell, state }, options)) };
          all.push(figures);
          options.onFigures?.(figures);
        }
      }
    }
  });
  return [...Map.groupBy(all, ({ part, state }) => `${part} ${state}`).values()].map(medians);
}

async function withInstallation(
  options: CellsAwayOptions,
  work: (installation: Installation) => Promise<void>,
): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-away-'));
  const servers: Cluster[] = [];
  const workers: ListeningProcess[] = [];
  const receiver = await startReceiver('ordinary');
  try {
    while (servers.length < SERVERS) servers.push(await startDatabaseServer({ shared_buffers: '128MB' }));
    const urls = await Promise.all(servers.map(async (server) => (await freshDatabase(server)).url));
    const [directoryUrl = '', ...otherUrls] = urls;
    const env = { DATABASE_URL: directoryUrl, WAYPOST_ENCRYPTION_KEY: randomBytes(32).toString('base64') };
    for (const [index, url] of otherUrls.entries())
      await runCommand(['cells', 'add', `cell-${index + 2}`, '--url', url, '--data-dir', dataDir], env);
    const tokens = await createProjects(dataDir, SERVERS, env);
    const homes = await onDatabase(directoryUrl, async (client) => {
      const { rows } = await client.query<{ cell: number }>('select cell from projects order by id');
      return rows.map(({ cell }) => cell - 1);
    });
    const cells = servers.map((server, index) => {
      const token = tokens[homes.indexOf(index)];
      if (token === undefined) throw new Error(`cell ${index + 1} has no project`);
      return { server, databaseUrl: urls[index] ?? '', token };
    });
    const flags = ['--allow-destinations', '127.0.0.1', '--database-timeout', DATABASE_TIMEOUT];
    while (workers.length < options.workers)
      workers.push(await startWaypost({ command: 'serve', dataDir, flags, env }));
    await Promise.all(workers.map(waitForAllCells));
    await work({ cells, workers, receiver });
  } finally {
    await Promise.all(workers.map((worker) => worker.end('SIGTERM')));
    await Promise.all(servers.map((server) => server.dispose()));
    await receiver.end();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

function targetOf({ workers }: Installation, cells: readonly CellServer[], destination: string): LoadTarget {
  const [url = '', ...otherUrls] = workers.map((worker) => worker.url);
  const [token = '', ...otherTokens] = cells.map((cell) => cell.token);
  return { peers: 'ordinary', url, otherUrls, token, otherTokens, destination };
}

async function measureState(
  installation: Installation,
  { cell, state }: { cell: CellServer; state: State },
  options: CellsAwayOptions,
): Promise<Omit<AwayFigures, 'part' | 'state'>> {
  const { receiver, cells, workers } = installation;
  const { interrupt, restore } = STATES[state];
  const destination = `${receiver.url}/`;
  const others = cells.filter((other) => other !== cell);
  const messages = options.perSecond * options.seconds;
  await receiver.expect(messages);
  const sending = new AbortController();
  const requests = sendContinuously(
    sending.signal,
    targetOf(installation, [cell], destination),
    options.perSecond / others.length,
  );
  const publishing = publishPaced(targetOf(installation, others, destination), messages, options.perSecond);
  try {
    await sleep(CONNECT_MS);
    await interrupt(cell.server);
    const { sentNs, publishMs } = await publishing;
    await receiver.complete(options.limitMs);
    sending.abort();
    const { distinct, arrivalsNs } = await receiver.report();
    const from = (CONNECT_MS * options.perSecond) / 1_000;
    const counted = publishMs.subarray(from);
    const delaysMs = arrivalDelaysMs(sentNs.subarray(from), arrivalsNs.subarray(from));
    return {
      publishP50Ms: quantile(counted, 0.5),
      publishP99Ms: quantile(counted, 0.99),
      publishMaxMs: quantile(counted, 1),
      arrivalP50Ms: quantile(delaysMs, 0.5),
      arrivalP99Ms: quantile(delaysMs, 0.99),
      missing: messages - distinct,
      ...(await requests),
    };
  } finally {
    sending.abort();
    await restore(cell.server);
    await Promise.all(workers.map(waitForAllCells));
    await sleep(RECOVERY_MS);
  }
}

/** Concurrent requests at each worker. */
const REQUESTS_MAX = 16;

/** Sends requests like the apps of a project whose cell is unavailable: one after the other, whatever the response. */
async function sendContinuously(
  end: AbortSignal,
  { url, otherUrls = [], token, destination }: LoadTarget,
  perSecond: number,
): Promise<{ accepted: number; rejected: number }> {
  const pools = [url, ...otherUrls].map((origin) => ({
    pool: new Pool(origin, { connections: REQUESTS_MAX }),
    busy: 0,
  }));
  let [accepted, rejected] = [0, 0];
  const send = async (at: { pool: Pool; busy: number }): Promise<void> => {
    at.busy += 1;
    try {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'text/plain' };
      const path = `/v2/publish/${destination}`;
      const response = await at.pool.request({ path, method: 'POST', headers, body: 'x' });
      await response.body.dump();
      if (response.statusCode === 200) accepted += 1;
      else rejected += 1;
    } catch {
      // aborted at the end
    }
    at.busy -= 1;
  };
  for (let nth = 0; !end.aborted; nth += 1) {
    const at = pools[nth % pools.length];
    if (at && at.busy < REQUESTS_MAX) void send(at);
    await sleep(1_000 / perSecond);
  }
  await Promise.all(pools.map(({ pool }) => pool.destroy()));
  return { accepted, rejected };
}

function medians(rounds: AwayFigures[]): AwayFigures {
  const [first] = rounds;
  if (first === undefined) throw new Error('at least one round is needed');
  const figure = (name: Exclude<keyof AwayFigures, 'part' | 'state'>) => median(rounds.map((round) => round[name]));
  return {
    ...first,
    publishP50Ms: figure('publishP50Ms'),
    publishP99Ms: figure('publishP99Ms'),
    publishMaxMs: figure('publishMaxMs'),
    arrivalP50Ms: figure('arrivalP50Ms'),
    arrivalP99Ms: figure('arrivalP99Ms'),
    accepted: figure('accepted'),
    rejected: figure('rejected'),
    missing: rounds.reduce((sum, { missing }) => sum + missing, 0),
  };
}

/** The progress line of one measurement. */
export function awayLine({
  part,
  state,
  publishP99Ms,
  publishMaxMs,
  arrivalP99Ms,
  missing,
  ...requests
}: AwayFigures): string {
  const lost = missing === 0 ? '' : `, ${missing} MISSING`;
  const others = `publish p99 ${publishP99Ms.toFixed(1)} ms, max ${publishMaxMs.toFixed(0)} ms, arrival p99 ${arrivalP99Ms.toFixed(1)} ms`;
  return `${part} ${state}: ${others}; its project: ${requests.accepted} accepted, ${requests.rejected} rejected${lost}`;
}

export function awayTable(figures: readonly AwayFigures[]): string {
  const rows = figures.map((each) => {
    const available = figures.find(({ part, state }) => part === each.part && state === 'available') ?? each;
    const ratio = (name: 'publishP99Ms' | 'arrivalP99Ms') => (each[name] / available[name]).toFixed(2);
    return [
      `${each.part} ${each.state}`,
      each.publishP50Ms.toFixed(1),
      each.publishP99Ms.toFixed(1),
      ratio('publishP99Ms'),
      each.publishMaxMs.toFixed(0),
      each.arrivalP50Ms.toFixed(1),
      each.arrivalP99Ms.toFixed(1),
      ratio('arrivalP99Ms'),
      String(each.missing),
    ];
  });
  const of = (what: string) => [`${what} p50 ms`, 'p99 ms', 'ratio'];
  return table('projects of the other cells', ['', ...of('publish'), 'max', ...of('arrival'), 'missing'], rows);
}
