/**
 * Measures the cost of a thousand idle cells, as schemas of one PostgreSQL: adding the cells, the start of a worker, an
 * idle worker, the first request to an idle cell, the operator's commands, and a second worker.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { addCell } from '../src/cells/operate/cells.ts';
import { parseConfig } from '../src/config/parse.ts';
import type { Cluster } from '../test/support/postgres/cluster.ts';
import { countConnections, waitForAllCells } from './cells.ts';
import { type ListeningProcess, residentMebibytes } from './child-process.ts';
import { startCpuMeter } from './cpu.ts';
import type { Figure } from './figure.ts';
import { metricsUrlIn } from './metrics.ts';
import { freshDatabase, startDatabaseServer } from './postgres/database.ts';
import { addProjects, runCommand } from './projects.ts';
import { startReceiver } from './receiver-process.ts';
import { median } from './statistics.ts';
import { startWaypost } from './waypost-process.ts';

export interface ManyCellsOptions {
  cells: number;
  /** Each project is in its own cell, which is idle at the first request. */
  projects: number;
  idleSeconds: number;
  onFigure: (figure: Figure) => void;
}

export const DEFAULT_MANY_CELLS = { cells: 1_000, projects: 6, idleSeconds: 30 };

/** The medians of this many cells are reported: of those added first, and of those added last. */
const REPORTED = 20;
/** The scrape interval of Prometheus; the metrics of cells are up to a minute old. */
const SCRAPE_INTERVAL_MS = 15_000;
/** Time until open cells become idle. */
const IDLE_AFTER_MS = 45_000;

export async function measureManyCells(options: ManyCellsOptions): Promise<void> {
  const server = await startDatabaseServer();
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-cells-'));
  const { url: databaseUrl } = await freshDatabase(server);
  const env = { DATABASE_URL: databaseUrl, WAYPOST_ENCRYPTION_KEY: randomBytes(32).toString('base64') };
  const workers: ListeningProcess[] = [];
  try {
    await runCommand(['init', '--data-dir', dataDir], env);
    await addAll({ dataDir, env }, options);
    const [tokens, projectsMs] = await timed(() => addProjects(dataDir, options.projects, env));
    options.onFigure({ name: 'adding a project', value: projectsMs / options.projects, unit: 'ms' });
    const start = () => startWorker(workers, { dataDir, env }, options);
    const worker = await start();
    const measured = { server, databaseUrl, workers };
    await measureIdleWorkers('one worker', measured, options);
    await measureRequests(worker, tokens, options);
    for (const words of [['cells'], ['doctor']]) {
      const [, ms] = await timed(() => runCommand([...words, '--data-dir', dataDir], env));
      options.onFigure({ name: `waypost ${words}`, value: ms, unit: 'ms' });
    }
    await start();
    await measureIdleWorkers('two workers', measured, options);
  } finally {
    for (const worker of workers) await worker.end('SIGTERM');
    await server.dispose();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

interface Installation {
  dataDir: string;
  env: Record<string, string>;
}

async function addAll({ dataDir, env }: Installation, { cells, onFigure }: ManyCellsOptions): Promise<void> {
  const config = parseConfig(env, ['--data-dir', dataDir]);
  const eachMs: number[] = [];
  for (let cell = 2; cell <= cells; cell += 1) {
    const [, ms] = await timed(() => addCell(config, { name: `c${cell}`, url: `?schema=c${cell}` }));
    eachMs.push(ms);
  }
  onFigure({
    name: `adding a cell, median of the first ${REPORTED}`,
    value: median(eachMs.slice(0, REPORTED)),
    unit: 'ms',
  });
  onFigure({
    name: `adding a cell, median of the last ${REPORTED}`,
    value: median(eachMs.slice(-REPORTED)),
    unit: 'ms',
  });
}

async function startWorker(
  workers: ListeningProcess[],
  { dataDir, env }: Installation,
  { onFigure }: ManyCellsOptions,
): Promise<ListeningProcess> {
  const [worker, readyMs] = await timed(async () => {
    const started = await startWaypost({
      command: 'serve',
      ...{ dataDir, env, flags: ['--allow-destinations', '127.0.0.1', '--metrics-address', '0'] },
    });
    workers.push(started);
    await waitForAllCells(started);
    return started;
  });
  onFigure({ name: `worker ${workers.length} listens after`, value: worker.startMs, unit: 'ms' });
  onFigure({ name: `worker ${workers.length} is ready after`, value: readyMs, unit: 'ms' });
  return worker;
}

async function measureIdleWorkers(
  name: string,
  { server, databaseUrl, workers }: { server: Cluster; databaseUrl: string; workers: readonly ListeningProcess[] },
  { idleSeconds, onFigure }: ManyCellsOptions,
): Promise<void> {
  await sleep(IDLE_AFTER_MS);
  const cpu = startCpuMeter({ waypost: workers.map(({ pid }) => pid), postgres: [server.pid] });
  await sleep(idleSeconds * 1_000);
  const { waypost = 0, postgres = 0 } = cpu.read();
  onFigure({ name: `${name}, CPU`, value: (waypost / idleSeconds) * 100, unit: '%' });
  onFigure({ name: `${name}, CPU of PostgreSQL`, value: (postgres / idleSeconds) * 100, unit: '%' });
  const mebibytes = workers.map(({ pid }) => residentMebibytes(pid));
  onFigure({ name: `${name}, resident`, value: Math.max(...mebibytes), unit: 'MiB' });
  onFigure({ name: `${name}, connections`, value: await countConnections(databaseUrl), unit: 'connections' });
}

/** Measures the first request to each idle cell, and a scrape of the metrics. */
async function measureRequests(
  { url, output }: ListeningProcess,
  tokens: readonly string[],
  { onFigure }: ManyCellsOptions,
): Promise<void> {
  const metricsUrl = metricsUrlIn(output());
  const receiver = await startReceiver('ordinary');
  try {
    await receiver.expect(2 * tokens.length);
    const publish = async (token: string) => {
      const headers = { authorization: `Bearer ${token}` };
      const [response, ms] = await timed(() =>
        request(`${url}/v2/publish/${receiver.url}/`, { method: 'POST', headers, body: 'a' }),
      );
      await response.body.dump();
      if (response.statusCode > 299) throw new Error(`a publish failed with status ${response.statusCode}`);
      return ms;
    };
    for (const name of ['the first publish', 'the second publish']) {
      const eachMs: number[] = [];
      for (const token of tokens) eachMs.push(await publish(token));
      onFigure({ name: `${name} to an idle cell, median`, value: median(eachMs), unit: 'ms' });
      onFigure({ name: `${name} to an idle cell, max`, value: Math.max(...eachMs), unit: 'ms' });
    }
  } finally {
    await receiver.end();
  }
  for (const name of ['first', 'second']) {
    const [, ms] = await timed(async () => (await request(metricsUrl)).body.text());
    onFigure({ name: `/metrics, ${name} scrape`, value: ms, unit: 'ms' });
    await sleep(SCRAPE_INTERVAL_MS);
  }
}

async function timed<T>(work: () => Promise<T>): Promise<[T, number]> {
  const startedAt = performance.now();
  return [await work(), performance.now() - startedAt];
}
