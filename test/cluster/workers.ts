/** Real servers on one PostgreSQL, each behind a network of its own that a test can break. */
import type { ListeningProcess } from '../../bench/child-process.ts';
import { startWaypost } from '../../bench/waypost-process.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

export interface WorkersOptions {
  count: number;
  databaseUrl: string;
  /** For what a server keeps beside its database: the encryption key, which all share. */
  dataDir: string;
  /** Settings of each server, as flags. */
  flags: readonly string[];
}

type Condition = 'up' | 'frozen' | 'down';

export class Worker {
  readonly name: string;
  /** Between it and PostgreSQL. */
  readonly proxy: TcpProxy;
  readonly #start: () => Promise<ListeningProcess>;
  #server: ListeningProcess | undefined;
  #condition: Condition = 'down';

  constructor(name: string, proxy: TcpProxy, start: () => Promise<ListeningProcess>) {
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

  /** The last lines of its log. */
  output(): string {
    return this.#server?.output() ?? '';
  }

  async start(): Promise<void> {
    const server = await this.#start();
    this.#server = server;
    this.#condition = 'up';
    void server.exited.then(() => {
      if (this.#server === server) this.#condition = 'down';
    });
  }

  /** Resolves when the process is gone. */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    this.#condition = 'down';
    await this.#server?.end(signal);
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
  static async start({ count, databaseUrl, dataDir, flags }: WorkersOptions): Promise<Workers> {
    const proxies = await Promise.all(
      Array.from({ length: count }, () => TcpProxy.open(Number(new URL(databaseUrl).port))),
    );
    const all = proxies.map((proxy, index) => {
      const env = { DATABASE_URL: proxy.through(databaseUrl) };
      return new Worker(`worker ${index + 1}`, proxy, () => startWaypost({ dataDir, flags: [...flags], env }));
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
