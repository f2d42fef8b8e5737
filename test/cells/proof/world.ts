/**
 * Cells, real workers that serve all of them, and a project in each cell under mixed load, with a ledger outside. While one
 * part fails or projects move, the other parts must not be affected.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Doubt, type Worker, Workers } from '../../cluster/workers.ts';
import { more, type Need, untilEnough } from '../../crash/enough.ts';
import { eventually } from '../../support/eventually.ts';
import { type Cluster, type Row, startCluster } from '../../support/postgres/cluster.ts';
import { SeededRandom } from '../../support/seeded-random.ts';
import { giveCommand } from '../../support/waypost-command.ts';
import { Mover } from './mover.ts';
import { Project } from './project.ts';
import { Runs } from './runs.ts';

export interface Cell {
  name: string;
  schema: string;
  server: Cluster;
  database: string;
}

/** The database and schema of each cell. The first one has the directory. */
export interface Ground {
  cells: readonly Cell[];
  /** The URL of the directory, for each worker. */
  databaseUrls: readonly string[];
  /** The resources that are closed with the world. */
  servers: readonly Cluster[];
}

/** Longer than a busy machine stalls. */
const WORKER_TIMEOUT_MS = 6_000;
/** A statement of a cell that is not broken must never take so long. */
const DATABASE_TIMEOUT_MS = 5_000;
const WORKERS = 3;
const DATABASE = 'cells';
const SERVERS = 2;
const CELLS_OF_SERVER = 2;
/** During a fault, an attempt may be repeated after this time. */
const MOMENT_MS = 20;
/** Acknowledged publishes and arrived attempts that prove that a project is served. */
const ALIVE = 6;

export class CellsWorld {
  readonly random: SeededRandom;
  readonly servers: readonly Cluster[];
  readonly cells: readonly Cell[];
  readonly workers: Workers;
  readonly projects: readonly Project[];
  readonly runs: Runs;
  readonly mover: Mover;
  /** Of the operator's commands. */
  readonly env: Readonly<Record<string, string>>;
  readonly #stop = new AbortController();
  #running: Promise<unknown> = Promise.resolve();
  #failure: unknown;
  /** The cell of each project, as last read from the directory. */
  #homes = new Map<string, Cell>();

  constructor(parts: Pick<CellsWorld, 'random' | 'servers' | 'cells' | 'workers' | 'projects' | 'runs' | 'env'>) {
    this.random = parts.random;
    this.servers = parts.servers;
    this.cells = parts.cells;
    this.workers = parts.workers;
    this.projects = parts.projects;
    this.runs = parts.runs;
    this.env = parts.env;
    this.mover = new Mover(parts.env);
  }

  /** The server of the directory, which has two cells as well. */
  get directory(): Cluster {
    return this.#cell(0).server;
  }

  /** Starts the load, which continues during faults. */
  async begin(): Promise<void> {
    await this.readHomes();
    for (const project of this.projects) await project.prepare();
    const { signal } = this.#stop;
    this.#running = Promise.all(this.projects.map((project) => project.run(signal))).catch((error: unknown) => {
      this.#failure ??= error;
    });
  }

  /** Reads the placements of the projects from the directory. */
  async readHomes(): Promise<void> {
    const rows = await this.queryIn(this.#cell(0), 'select name, cell from projects');
    this.#homes = new Map(rows.map(({ name, cell }) => [String(name), this.#cell(Number(cell) - 1)]));
  }

  homeOf({ name }: Project): Cell {
    const home = this.#homes.get(name);
    if (home === undefined) throw new Error(`the cell of ${name} is unknown`);
    return home;
  }

  /** The projects with a cell on this server. */
  on(server: Cluster): Project[] {
    return this.projects.filter((project) => this.homeOf(project).server === server);
  }

  cellsOn(server: Cluster): Cell[] {
    return this.cells.filter((cell) => cell.server === server);
  }

  others(projects: readonly Project[]): Project[] {
    return this.projects.filter((project) => !projects.includes(project));
  }

  /** Any cell except the project's own. */
  cellFor(project: Project, among: readonly Cell[] = this.cells): Cell {
    return this.random.choose(among.filter((cell) => cell !== this.homeOf(project)));
  }

  /** Runs a query in the schema of the cell, without the workers. */
  queryIn({ server, schema, database }: Cell, text: string): Promise<Row[]> {
    return server.query(`set search_path = ${schema}; ${text}`, [], database);
  }

  /** Moves the project, and resolves when all workers know the new placement. */
  async move(project: Project, to: Cell): Promise<void> {
    await project.during(() => this.mover.untilMoved(project.name, to.name));
    await this.readHomes();
  }

  /** While `strike` runs, attempts of the `struck` projects may be repeated. Afterwards all projects are served. */
  async survive(struck: readonly Project[], strike: () => Promise<void>): Promise<void> {
    await this.alive(this.projects);
    await this.#disturb(struck, strike);
    await this.alive(this.projects);
  }

  /** Checks that all requests of these projects have a successful response meanwhile, and that they are served at the end. */
  async unharmed(projects: readonly Project[], meanwhile: () => Promise<void>): Promise<void> {
    for (const project of projects) project.doubts = [];
    await meanwhile();
    await this.alive(projects);
    const doubts = projects.flatMap((project) => project.doubts);
    if (doubts.length > 0) throw new Error(`requests of unaffected projects failed:\n${doubts.join('\n')}`);
  }

  /** Resolves once each of `projects` has had acknowledgements and arrivals. */
  alive(projects: readonly Project[]): Promise<void> {
    return this.until(
      projects.flatMap((project) => [
        more(`acknowledgements of ${project.name}`, () => project.acks, ALIVE),
        more(`arrivals of ${project.name}`, () => project.arrivals, ALIVE),
      ]),
    );
  }

  /** Resolves once each of `projects` had a rejected request, or one without a response. */
  refused(projects: readonly Project[]): Promise<void> {
    for (const project of projects) project.doubts = [];
    return this.until(
      projects.map((project) => ({
        what: `doubts of ${project.name}`,
        count: () => project.doubts.length,
        atLeast: 1,
      })),
    );
  }

  /**
   * Resolves once `/readyz` of each running worker reports these cells as unavailable, and no others. It need not report a closed cell
   * without projects.
   */
  async readyWithout(cells: readonly Cell[]): Promise<void> {
    const homes = new Set(this.#homes.values());
    const inUse = cells.filter((cell) => homes.has(cell));
    for (const worker of this.workers.up()) await readyWithout(worker, { cells, inUse });
  }

  until(needs: readonly Need[]): Promise<void> {
    return untilEnough(needs, () => this.assertSound());
  }

  /** Throws if the load received a response that the contract does not allow, or a worker has exited by itself. */
  assertSound(): void {
    if (this.#failure !== undefined) throw this.#failure;
    const deaths = this.workers.all.flatMap(({ death }) => death ?? []);
    if (deaths.length > 0) throw new Error(deaths.join('\n'));
  }

  /** A worker has logged a doubt about a project, or about all projects of a cell. */
  noteDoubt({ cell = this.#cell(0).name, project: name }: Doubt): void {
    for (const project of this.projects) {
      const isMeant =
        name === undefined ? project.isMoving || this.homeOf(project).name === cell : project.name === name;
      if (isMeant) project.beginMoment();
    }
  }

  /** Ends the load and the schedules, and resumes all paused lanes. */
  async calmDown(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    this.assertSound();
    for (const project of this.projects) await project.calmDown();
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.mover.close();
    await this.workers.close();
    await this.#running;
    for (const project of this.projects) await project.close();
    await this.runs.close();
    await Promise.all(this.servers.map((server) => server.dispose()));
    rmSync(this.env['WAYPOST_DATA_DIR'] ?? '', { recursive: true, force: true });
  }

  async #disturb(struck: readonly Project[], strike: () => Promise<void>): Promise<void> {
    const isOver = new AbortController();
    const moments = (async () => {
      do {
        for (const project of struck) project.beginMoment();
        await sleep(MOMENT_MS);
      } while (!isOver.signal.aborted);
      for (const project of struck) project.beginMoment();
    })();
    try {
      await strike();
    } finally {
      isOver.abort();
      await moments;
    }
  }

  #cell(index: number): Cell {
    const cell = this.cells[index];
    if (cell === undefined) throw new Error(`there is no cell ${index + 1}`);
    return cell;
  }
}

async function readyWithout(
  worker: Pick<Worker, 'url' | 'name'>,
  { cells, inUse }: { cells: readonly Cell[]; inUse: readonly Cell[] },
): Promise<void> {
  const namesOf = (some: readonly Cell[]) => some.map(({ name }) => name).toSorted();
  let away: string[] = [];
  await eventually(
    () =>
      `${worker.name} to say that ${namesOf(inUse).join()} are away, of ${namesOf(cells).join()}; it says ${away.join()}`,
    async () => {
      ({ away = [] } = (await (await fetch(`${worker.url}/readyz`)).json()) as { away?: string[] });
      return namesOf(inUse).every((name) => away.includes(name)) && away.every((name) => namesOf(cells).includes(name));
    },
    60_000,
  );
}

/** Two PostgreSQL servers with four cells, two schemas on each. */
export async function twoServers(): Promise<Ground> {
  const servers = await Promise.all(Array.from({ length: SERVERS }, () => startCluster()));
  await Promise.all(servers.map((server) => server.createDatabase(DATABASE)));
  const cells = servers.flatMap((server, index) =>
    Array.from({ length: CELLS_OF_SERVER }, (_, of) => cellOf(server, DATABASE, index * CELLS_OF_SERVER + of + 1)),
  );
  const [first] = cells;
  const databaseUrl = first ? urlOf(first) : '';
  return { servers, cells, databaseUrls: Array.from({ length: WORKERS }, () => databaseUrl) };
}

export function cellOf(server: Cluster, database: string, number: number): Cell {
  return { name: number === 1 ? 'first' : `cell-${number}`, schema: `c${number}`, server, database };
}

export function urlOf({ schema, server, database }: Cell, through = server): string {
  return `${through.url(database)}?schema=${schema}`;
}

/** Starts everything except the load. */
export async function openCellsWorld(seed: number, { cells, databaseUrls, servers }: Ground): Promise<CellsWorld> {
  const random = new SeededRandom(seed);
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-cells-'));
  const [first, ...others] = cells as [Cell, ...Cell[]];
  const env = { WAYPOST_DATABASE_URL: urlOf(first), WAYPOST_DATA_DIR: dataDir };
  const give = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await giveCommand(args, env);
    if (code !== 0) throw new Error(`waypost ${args.join(' ')}: ${stderr}`);
    return stdout;
  };
  await give('init');
  for (const cell of others) {
    const isBeside = cell.server === first.server;
    const place = isBeside ? ['--schema', cell.schema] : ['--url', urlOf(cell)];
    await give('cells', 'add', cell.name, ...place);
  }
  const flags = [
    ...['--worker-timeout', `${WORKER_TIMEOUT_MS}ms`],
    ...['--database-timeout', `${DATABASE_TIMEOUT_MS}ms`],
    ...['--retention-interval', '2s'],
    ...['--allow-destinations', '127.0.0.1'],
    ...['--drain-limit', '5s'],
  ];
  const doubts = { note: (_: Doubt) => {} };
  const workers = await Workers.start({
    ...{ databaseUrls, dataDir, flags, command: 'serve' },
    onDoubt: (doubt) => doubts.note(doubt),
  });
  const tokens: string[] = [];
  // The project that is created with the directory counts as one of its cell.
  while (tokens.length < cells.length) {
    const name = nameOf(tokens.length);
    await give('projects', 'create', name);
    const made = await give('tokens', 'create', '--project', name, '--scope', 'full', '--json');
    tokens.push((JSON.parse(made) as { token: string }).token);
  }
  const runs = await Runs.open(workers, tokens, dataDir);
  const opened = tokens.map((token, index) =>
    Project.open({ name: nameOf(index), token, workers, random, runs: runs.loadOf(index + 1, token, random) }),
  );
  const projects = await Promise.all(opened);
  const world = new CellsWorld({ random, servers, cells, workers, projects, runs, env });
  doubts.note = (doubt) => world.noteDoubt(doubt);
  await world.readyWithout([]);
  return world;
}

function nameOf(index: number): string {
  return `project-${index + 1}`;
}
