/** Real servers on one PostgreSQL, each behind a TCP proxy that a test can break. */
import { join } from 'node:path';
import type { Exit, ListeningProcess } from '../../bench/child-process.ts';
import { startWaypost } from '../../bench/waypost-process.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

export interface WorkersOptions {
  /** One database URL for each worker. */
  databaseUrls: readonly string[];
  /** The data folder for files outside the database: the encryption key, which all share. */
  dataDir: string;
  /** Settings of each server, as flags. */
  flags: readonly string[];
  /** Default: `dev`. */
  command?: 'dev' | 'serve';
  /**
   * Called when a worker was expired, was fenced for all projects or for one, or got no response to a settle. Earlier arrivals
   * may then be repeated.
   */
  onDoubt?: (doubt: Doubt) => void;
}

export interface Doubt {
  /** The name of a cell that is not the first. */
  cell: string | undefined;
  /** The name of the project, if the event concerns only one. */
  project: string | undefined;
}

/** Log events that precede a repeated attempt. */
const DOUBTS = /"event":"(?:fence_closed|declared_dead|worker_gone|settle_failed|project_cut_off)"/;
const CELL = /"cell":"([^"]+)"/;
const PROJECT = /"project":"([^"]+)"/;

/** The folder of a checkout. Default: this checkout. */
export type Program = string | undefined;

type Condition = 'up' | 'frozen' | 'down';

export class Worker {
  readonly name: string;
  /** The proxy between the worker and PostgreSQL. */
  readonly proxy: TcpProxy;
  /** The program to run from the next start on. */
  program: Program;
  readonly #start: (program: Program) => Promise<ListeningProcess>;
  #server: ListeningProcess | undefined;
  #condition: Condition = 'down';
  #death: string | undefined;

  constructor(name: string, proxy: TcpProxy, start: (program: Program) => Promise<ListeningProcess>) {
    this.name = name;
    this.proxy = proxy;
    this.#start = start;
  }

  get condition(): Condition {
    return this.#condition;
  }

  get url(): string {
    if (this.#server === undefined) throw new Error(`${this.name} was never started`);
    return this.#server.url;
  }

  /** Why the worker has exited, if no test ended it. */
  get death(): string | undefined {
    return this.#death;
  }

  /** The last lines of the worker's log. */
  output(): string {
    return this.#server?.output() ?? '';
  }

  async start(): Promise<void> {
    const server = await this.#start(this.program);
    this.#server = server;
    this.#condition = 'up';
    void server.exited.then(({ code, signal }) => {
      if (this.#server !== server || this.#condition === 'down') return;
      this.#condition = 'down';
      this.#death = `${this.name} ended by itself (code ${code}, signal ${signal}):\n${server.output()}`;
    });
  }

  /** Resolves when the process has exited. */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<Exit | undefined> {
    this.#condition = 'down';
    return this.#server?.end(signal);
  }

  /** Resolves when the process has exited by itself. */
  async ended(): Promise<Exit | undefined> {
    return this.#server?.exited;
  }

  /** Freezes the worker like a suspended machine: its connections stay open, and its time stops. */
  freeze(): void {
    this.#signal('SIGSTOP');
    this.#condition = 'frozen';
  }

  thaw(): void {
    this.#condition = 'up';
    this.#signal('SIGCONT');
  }

  #signal(signal: NodeJS.Signals): void {
    if (this.#server === undefined || this.#condition === 'down') throw new Error(`${this.name} does not run`);
    process.kill(this.#server.pid, signal);
  }
}

export class Workers {
  readonly all: readonly Worker[];

  private constructor(all: readonly Worker[]) {
    this.all = all;
  }

  /** Starts the first worker, which creates the schema and the key, and then all others at once. */
  static async start({ databaseUrls, dataDir, flags, command = 'dev', onDoubt }: WorkersOptions): Promise<Workers> {
    const links = databaseUrls.map(async (url) => ({ url, proxy: await TcpProxy.open(Number(new URL(url).port)) }));
    const all = (await Promise.all(links)).map(({ url, proxy }, index) => {
      const env = { DATABASE_URL: proxy.through(url) };
      return new Worker(`worker ${index + 1}`, proxy, (program) => {
        const onLine = (line: string) => {
          if (DOUBTS.test(line)) onDoubt?.({ cell: CELL.exec(line)?.[1], project: PROJECT.exec(line)?.[1] });
        };
        const start = { command, dataDir, flags: [...flags], env, onLine };
        if (program === undefined) return startWaypost(start);
        // The compile cache of another program belongs to its folder.
        return startWaypost({ ...start, program, env: { ...env, NODE_COMPILE_CACHE: join(program, 'compiled') } });
      });
    });
    const workers = new Workers(all);
    try {
      const [first, ...others] = all;
      await first?.start();
      await Promise.all(others.map((worker) => worker.start()));
      return workers;
    } catch (error) {
      await workers.close();
      throw error;
    }
  }

  up(): Worker[] {
    return this.all.filter(({ condition }) => condition === 'up');
  }

  async close(): Promise<void> {
    await Promise.all(this.all.map((worker) => worker.end('SIGKILL')));
    await Promise.all(this.all.map(({ proxy }) => proxy.close()));
  }
}
