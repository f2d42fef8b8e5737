/** Real servers on one PostgreSQL, each behind a TCP proxy that a test can break. */
import { join } from 'node:path';
import type { Exit, ListeningProcess } from '../../bench/child-process.ts';
import { startWaypost } from '../../bench/waypost-process.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

export interface WorkersOptions {
  /** One for each. */
  databaseUrls: readonly string[];
  /** For what a server keeps beside its database: the encryption key, which all share. */
  dataDir: string;
  /** Settings of each server, as flags. */
  flags: readonly string[];
  /** Default: `dev`. */
  command?: 'dev' | 'serve';
  /**
   * Hears that a worker was declared dead, had to fear so, of all it had or of a project, or had no answer to a settle: what arrived before
   * may arrive again.
   */
  onDoubt?: (doubt: Doubt) => void;
}

export interface Doubt {
  /** By its name, of one that is not the first. */
  cell: string | undefined;
  /** By its name, if it is about one alone. */
  project: string | undefined;
}

/** What the log says before anything is attempted again. */
const DOUBTS = /"event":"(?:fence_closed|declared_dead|worker_gone|settle_failed|project_cut_off)"/;
const CELL = /"cell":"([^"]+)"/;
const PROJECT = /"project":"([^"]+)"/;

/** The folder of a checkout; this one if there is none. */
export type Program = string | undefined;

type Condition = 'up' | 'frozen' | 'down';

export class Worker {
  readonly name: string;
  /** Between it and PostgreSQL. */
  readonly proxy: TcpProxy;
  /** What runs from the next start on. */
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

  /** Why it does not run, if nobody ended it. */
  get death(): string | undefined {
    return this.#death;
  }

  /** The last lines of its log. */
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

  /** Resolves when the process is gone. */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<Exit | undefined> {
    this.#condition = 'down';
    return this.#server?.end(signal);
  }

  /** Resolves when the process has ended by itself. */
  async ended(): Promise<Exit | undefined> {
    return this.#server?.exited;
  }

  /** As a machine that is suspended: its connections stay, and it knows of no time that passes. */
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

  /** The first one makes the schema and the key; then all others at once. */
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
        // What is compiled of another program goes with it.
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
