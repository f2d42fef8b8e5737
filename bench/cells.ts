/**
 * Measures the cost of cells: of a message with 1, 4 and 16 cells on one PostgreSQL, with the same load per cell, in
 * alternating rounds; and of an idle server with 64 cells and with one, first while all cells are open after the start,
 * then while all cells are idle.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import type { Cluster } from '../test/support/postgres/cluster.ts';
import { type ListeningProcess, residentMebibytes } from './child-process.ts';
import { startCpuMeter } from './cpu.ts';
import { type LoadTarget, publishAll, publishPaced } from './load.ts';
import { freshDatabase, onDatabase, refreshStatistics, startDatabaseServer } from './postgres/database.ts';
import { createProjects, runCommand } from './projects.ts';
import { type Receiver, startReceiver } from './receiver-process.ts';
import { median } from './statistics.ts';
import { table } from './table.ts';
import { startWaypost } from './waypost-process.ts';

export interface CellsOptions {
  cells: readonly number[];
  idleCells: readonly number[];
  rounds: number;
  seconds: number;
  /** Messages per second and cell. */
  perSecondOfCell: number;
  warmUpMessages: number;
  idleSeconds: number;
  limitMs: number;
  onFigures?: (figures: LoadedFigures | IdleFigures) => void;
}

export const DEFAULT_CELLS = {
  ...{ cells: [1, 4, 16], idleCells: [1, 64], rounds: 3, seconds: 10 },
  ...{ perSecondOfCell: 50, warmUpMessages: 8_000, idleSeconds: 30, limitMs: 60_000 },
};

/** CPU time per 1,000 messages. */
export interface LoadedFigures {
  cells: number;
  waypostCpuMs: number;
  postgresCpuMs: number;
  missing: number;
}

export interface IdleFigures {
  cells: number;
  state: 'open' | 'idle';
  /** Percent of one core. */
  cpuPercent: number;
  postgresCpuPercent: number;
  residentMiB: number;
  connections: number;
}

export interface CellsFigures {
  loaded: LoadedFigures[];
  idle: IdleFigures[];
}

export async function measureCells(options: CellsOptions): Promise<CellsFigures> {
  const server = await startDatabaseServer();
  const receiver = await startReceiver('ordinary');
  try {
    const loaded: LoadedFigures[] = [];
    const idle: IdleFigures[] = [];
    for (let round = 1; round <= options.rounds; round += 1) {
      for (const cells of options.cells) {
        const figures = await withCells(server, { cells, projects: cells }, (started) =>
          measureLoad(started, receiver, options),
        );
        loaded.push(figures);
        options.onFigures?.(figures);
      }
    }
    for (const cells of options.idleCells) {
      await withCells(server, { cells, projects: 1 }, async (started) => {
        for (const state of ['open', 'idle'] as const) {
          const figures = await measureIdle(started, state, options);
          idle.push(figures);
          options.onFigures?.(figures);
        }
      });
    }
    return { loaded: [...Map.groupBy(loaded, ({ cells }) => cells).values()].map(medians), idle };
  } finally {
    await receiver.end();
    await server.dispose();
  }
}

interface CellsServer {
  cells: number;
  waypost: ListeningProcess;
  /** Process ids of PostgreSQL. */
  pids: readonly number[];
  databaseUrl: string;
  tokens: readonly string[];
}

async function withCells<T>(
  server: Cluster,
  options: { cells: number; projects: number },
  work: (server: CellsServer) => Promise<T>,
): Promise<T> {
  const { url: databaseUrl } = await freshDatabase(server);
  return withCellsAt({ databaseUrl, pids: [server.pid] }, options, work);
}

/**
 * `databaseUrl` is the URL of the first cell; the other cells are schemas of the same database. A worker connects to
 * `workerUrl`.
 */
export async function withCellsAt<T>(
  { databaseUrl, workerUrl = databaseUrl, pids }: { databaseUrl: string; workerUrl?: string; pids: readonly number[] },
  { cells, projects }: { cells: number; projects: number },
  work: (server: CellsServer) => Promise<T>,
): Promise<T> {
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-cells-'));
  const env = { DATABASE_URL: databaseUrl, WAYPOST_ENCRYPTION_KEY: randomBytes(32).toString('base64') };
  try {
    for (let cell = 2; cell <= cells; cell += 1) {
      await runCommand(['cells', 'add', `c${cell}`, '--schema', `c${cell}`, '--data-dir', dataDir], env);
    }
    const tokens = await createProjects(dataDir, projects, env);
    const flags = ['--allow-destinations', '127.0.0.1'];
    const waypost = await startWaypost({ command: 'serve', dataDir, flags, env: { ...env, DATABASE_URL: workerUrl } });
    try {
      await waitForAllCells(waypost);
      return await work({ cells, waypost, pids, databaseUrl: workerUrl, tokens });
    } finally {
      await waypost.end('SIGTERM');
    }
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** Interval between two checks of /readyz. */
const READY_POLL_MS = 200;

/** Resolves when the worker reports that no cell is unavailable. */
export async function waitForAllCells(waypost: ListeningProcess): Promise<void> {
  while (!(await areAllCellsAvailable(waypost))) await sleep(READY_POLL_MS);
}

async function areAllCellsAvailable({ url }: ListeningProcess): Promise<boolean> {
  const response = await request(`${url}/readyz`);
  const { away = [] } = (await response.body.json()) as { away?: string[] };
  return response.statusCode === 200 && away.length === 0;
}

async function measureLoad(server: CellsServer, receiver: Receiver, options: CellsOptions): Promise<LoadedFigures> {
  const { cells, waypost, pids, databaseUrl, tokens } = server;
  const [token = '', ...otherTokens] = tokens;
  const target: LoadTarget = {
    peers: 'ordinary',
    url: waypost.url,
    token,
    otherTokens,
    destination: `${receiver.url}/`,
  };
  await receiver.expect(options.warmUpMessages);
  await publishAll(target, options.warmUpMessages);
  if (!(await receiver.complete(options.limitMs))) throw new Error('the warm-up was not delivered');
  await refreshStatistics(databaseUrl);
  const perSecond = options.perSecondOfCell * cells;
  const messages = perSecond * options.seconds;
  await receiver.expect(messages);
  const cpu = startCpuMeter({ waypost: [waypost.pid], postgres: pids });
  await publishPaced(target, messages, perSecond);
  await receiver.complete(options.limitMs);
  await sleep(SETTLED_MS);
  const { waypost: waypostSeconds = 0, postgres: postgresSeconds = 0 } = cpu.read();
  const { distinct } = await receiver.report();
  return {
    cells,
    waypostCpuMs: (waypostSeconds * 1e6) / messages,
    postgresCpuMs: (postgresSeconds * 1e6) / messages,
    missing: messages - distinct,
  };
}

/** Time after the last arrival for its outcome to be saved. */
const SETTLED_MS = 100;
/** The delay before each measurement: `open` until the start has finished, `idle` until all cells are idle. */
const DELAY_MS = { open: 5_000, idle: 25_000 };
/** Shorter than the half minute for which an idle cell stays open. */
const OPEN_MS = 20_000;

export async function measureIdle(
  { cells, waypost, pids, databaseUrl }: CellsServer,
  state: IdleFigures['state'],
  options: Pick<CellsOptions, 'idleSeconds'>,
): Promise<IdleFigures> {
  await sleep(DELAY_MS[state]);
  const seconds = state === 'open' ? OPEN_MS / 1_000 : options.idleSeconds;
  const cpu = startCpuMeter({ waypost: [waypost.pid], postgres: pids });
  await sleep(seconds * 1_000);
  const { waypost: waypostSeconds = 0, postgres: postgresSeconds = 0 } = cpu.read();
  return {
    cells,
    state,
    cpuPercent: (waypostSeconds / seconds) * 100,
    postgresCpuPercent: (postgresSeconds / seconds) * 100,
    residentMiB: residentMebibytes(waypost.pid),
    connections: await countConnections(databaseUrl),
  };
}

/** Connections of all workers to this server. */
export function countConnections(databaseUrl: string): Promise<number> {
  return onDatabase(databaseUrl, async (client) => {
    const { rows } = await client.query<{ count: number }>(
      "select count(*)::int as count from pg_stat_activity where application_name = 'waypost'",
    );
    return rows[0]?.count ?? 0;
  });
}

function medians(rounds: LoadedFigures[]): LoadedFigures {
  return {
    cells: rounds[0]?.cells ?? 0,
    waypostCpuMs: median(rounds.map(({ waypostCpuMs }) => waypostCpuMs)),
    postgresCpuMs: median(rounds.map(({ postgresCpuMs }) => postgresCpuMs)),
    missing: rounds.reduce((sum, { missing }) => sum + missing, 0),
  };
}

/** The progress line of one measurement. */
export function cellsLine(figures: LoadedFigures | IdleFigures): string {
  if ('connections' in figures) {
    return `${figures.cells} cells without load, ${figures.state}: CPU ${figures.cpuPercent.toFixed(1)} %, RSS ${figures.residentMiB.toFixed(0)} MiB, ${figures.connections} connections`;
  }
  return `${figures.cells} cells: CPU ${(figures.waypostCpuMs + figures.postgresCpuMs).toFixed(0)} ms${figures.missing === 0 ? '' : `, ${figures.missing} MISSING`}`;
}

export function cellsTable({ loaded, idle }: CellsFigures): string {
  const both = ({ waypostCpuMs, postgresCpuMs }: LoadedFigures) => waypostCpuMs + postgresCpuMs;
  const [one] = loaded;
  const price = loaded.map((each) => [
    `${each.cells} cells`,
    ...[each.waypostCpuMs, each.postgresCpuMs, both(each)].map((ms) => ms.toFixed(0)),
    one ? (both(each) / both(one)).toFixed(2) : '-',
    String(each.missing),
  ]);
  const rest = idle.map(({ cells, state, cpuPercent, postgresCpuPercent, residentMiB, connections }) => [
    `${cells} cells, ${state}`,
    ...[cpuPercent, postgresCpuPercent, residentMiB].map((value) => value.toFixed(1)),
    String(connections),
  ]);
  return [
    table('per 1,000 messages', ['', 'Waypost CPU ms', 'PostgreSQL', 'both', 'ratio to one cell', 'missing'], price),
    table('without load', ['', 'Waypost CPU %', 'PostgreSQL %', 'RSS MiB', 'connections'], rest),
  ].join('\n\n');
}
