/** Starts a PostgreSQL server for one test, which can stop, kill and restart it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readFileSync, realpathSync, statfsSync } from 'node:fs';
import { createServer } from 'node:net';
import { freemem, tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { eventually } from '../eventually.ts';
import { findBinaries, type PostgresVersion, RUN_AS } from './binaries.ts';
import { guard } from './guard.ts';

export interface ClusterOptions {
  /** Default 18. */
  version?: PostgresVersion;
  /** The folder that holds `bin` of another installation, of a version since 15. Default: the package of `version`. */
  binaries?: string;
  /**
   * Settings of PostgreSQL that override `SETTINGS`. Without `fsync: 'on'`, a crash of the machine would lose the data;
   * a crash of PostgreSQL alone does not.
   */
  settings?: Readonly<Record<string, string>>;
  /** The data folder, below `folder`: a copy of another data folder. Default: a new one. */
  dataDir?: string;
  /** A folder from {@link makeFolder}, which `dispose` removes. Default: a new one. */
  folder?: string;
}

/** PostgreSQL waits for its clients, ends all sessions, or stops as in a crash and recovers at the next start. */
export type StopMode = 'smart' | 'fast' | 'immediate';

const STOP_SIGNALS: Readonly<Record<StopMode, NodeJS.Signals>> = {
  smart: 'SIGTERM',
  fast: 'SIGINT',
  immediate: 'SIGQUIT',
};

const SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '200',
  fsync: 'off',
  // PostgreSQL uses files instead of the machine's shared memory, which is small in containers.
  dynamic_shared_memory_type: 'mmap',
  shared_buffers: '64MB',
  lc_messages: 'C',
};

/** Values are text, or numbers for types that fit into a number. */
export type Row = Record<string, unknown>;

export class Cluster {
  readonly version: PostgresVersion;
  /** The data folder, which belongs to the user who runs the server. */
  readonly dataDir: string;
  /** Stays the same across restarts. */
  readonly port: number;
  readonly #binaries: string;
  readonly #settings: Readonly<Record<string, string>>;
  readonly #finish: () => Promise<void>;
  #server: ChildProcess | undefined;
  #log = '';
  #databases = 0;

  /** @internal {@link startCluster} creates clusters. */
  constructor(parts: {
    version: PostgresVersion;
    dataDir: string;
    port: number;
    binaries: string;
    settings: Readonly<Record<string, string>>;
    finish: () => Promise<void>;
  }) {
    this.version = parts.version;
    this.dataDir = parts.dataDir;
    this.port = parts.port;
    this.#binaries = parts.binaries;
    this.#settings = parts.settings;
    this.#finish = parts.finish;
  }

  /** The URL of a database for the superuser, who needs no password. */
  url(database = 'postgres'): string {
    return `postgres://postgres@127.0.0.1:${this.port}/${database}`;
  }

  /** The end of the server's log. */
  get log(): string {
    return this.#log;
  }

  /** The process id of the postmaster. Throws if the server is not running. */
  get pid(): number {
    const pid = this.#server?.pid;
    if (pid === undefined) throw new Error('PostgreSQL does not run');
    return pid;
  }

  /** Runs statements on a new connection and returns the rows of the last one. */
  async query(text: string, values: readonly unknown[] = [], database = 'postgres'): Promise<Row[]> {
    const client = new pg.Client({ connectionString: this.url(database) });
    client.on('error', () => undefined); // the query reports a broken connection
    await client.connect();
    try {
      const result: unknown = await client.query(text, values.length === 0 ? undefined : [...values]);
      const last = (Array.isArray(result) ? result.at(-1) : result) as { rows: Row[] };
      return last.rows;
    } finally {
      await client.end();
    }
  }

  /** Creates an empty database and returns its URL. */
  async createDatabase(name = this.#freeName(), template = 'template0'): Promise<string> {
    // Before version 15, files are always copied. Since version 15 copying is optional, and faster without fsync.
    await this.query(
      `create database "${name}" template "${template}"${this.version > 14 ? ' strategy file_copy' : ''}`,
    );
    return this.url(name);
  }

  /** Creates a copy of a database that has no connections. Returns its URL. */
  copyDatabase(template: string): Promise<string> {
    return this.createDatabase(this.#freeName(), template);
  }

  #freeName(): string {
    this.#databases += 1;
    return `test_${process.pid}_${this.#databases}`;
  }

  /** Resolves when the server accepts connections; after a kill, the server recovers first. */
  async start(): Promise<void> {
    if (this.#server !== undefined) throw new Error('PostgreSQL runs already');
    await eventually(
      () => `PostgreSQL to start; it said: ${this.#log}`,
      async () => (await this.#launch()) === 'ready',
      30_000,
    );
  }

  /** Resolves when the server has ended. */
  async stop(mode: StopMode = 'fast'): Promise<void> {
    await this.#end(STOP_SIGNALS[mode]);
  }

  /** Sends SIGKILL to the postmaster. Its children end a little later, as in a crash. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** Suspends all processes: open and new connections get no response until `thaw`. Only on Linux. */
  freeze(): void {
    process.kill(this.pid, 'SIGSTOP'); // first, so that the postmaster starts no more children
    for (const child of childrenOf(this.pid)) process.kill(child, 'SIGSTOP');
  }

  thaw(): void {
    for (const child of childrenOf(this.pid)) process.kill(child, 'SIGCONT');
    process.kill(this.pid, 'SIGCONT');
  }

  async restart(mode: StopMode = 'fast'): Promise<void> {
    await this.stop(mode);
    await this.start();
  }

  /** Stops the server immediately, and removes its folder. */
  async dispose(): Promise<void> {
    await this.#finish();
  }

  /** Returns `'busy'` if children of a killed postmaster still use its memory or port: a retry may succeed. */
  async #launch(): Promise<'ready' | 'busy'> {
    const settings = Object.entries({ ...this.#settings, port: String(this.port) });
    const server = run(join(this.#binaries, 'bin', 'postgres'), [
      ...['-D', this.dataDir],
      ...settings.flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    ]);
    this.#log = '';
    const ready = new Promise<true>((resolve) => {
      server.stderr?.on('data', (chunk: Buffer) => {
        this.#log = (this.#log + chunk.toString('utf8')).slice(-65_536);
        if (/ready to accept (read[- ]only )?connections/.test(this.#log)) resolve(true);
      });
    });
    const closed = once(server, 'close');
    if ((await Promise.race([ready, closed])) === true) {
      this.#server = server;
      // The server can be started again, whatever the reason of its end.
      void closed.then(() => {
        if (this.#server === server) this.#server = undefined;
      });
      return 'ready';
    }
    if (/still in use|Address already in use|lock file "postmaster.pid" already exists/.test(this.#log)) return 'busy';
    throw new Error(`PostgreSQL ended instead of starting: ${this.#log}`);
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    const exited = once(server, 'exit'); // not 'close': the children of a killed postmaster keep the pipe open a little longer
    server.kill(signal);
    await exited;
    this.#server = undefined;
  }
}

/** Starts a PostgreSQL on a random port of 127.0.0.1, with a superuser `postgres` who needs no password. */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const version = options.version ?? 18;
  const folder = options.folder ?? makeFolder({ onDisk: options.settings?.['fsync'] === 'on' });
  const dataDir = options.dataDir ?? join(folder, 'data');
  const { finish } = guard(join(dataDir, 'postmaster.pid'), folder);
  try {
    const binaries = options.binaries ?? findBinaries(version, folder);
    if (!existsSync(dataDir)) await initialise(binaries, dataDir);
    const settings = { ...SETTINGS, ...options.settings };
    const cluster = new Cluster({ version, dataDir, port: await findPort(), binaries, settings, finish });
    await cluster.start();
    return cluster;
  } catch (error) {
    await finish();
    throw error;
  }
}

const SHARED_MEMORY = '/dev/shm';
/** Well above the size of all databases of a test run. */
const MEMORY_BYTES_MIN = 8 * 1024 ** 3;

/**
 * A new temporary folder that belongs to the user who will run PostgreSQL. The folder is in memory if the machine has
 * enough, since tests create and delete hundreds of databases of hundreds of files each. With `onDisk` the folder is
 * never in memory.
 */
export function makeFolder({ onDisk = false } = {}): string {
  const parent = !onDisk && hasSharedMemory() ? SHARED_MEMORY : realpathSync(tmpdir());
  const folder = mkdtempSync(join(parent, 'waypost-postgres-'));
  if (RUN_AS !== undefined) chownSync(folder, RUN_AS.uid, RUN_AS.gid);
  return folder;
}

function hasSharedMemory(): boolean {
  if (!existsSync(SHARED_MEMORY)) return false;
  const { bavail, bsize } = statfsSync(SHARED_MEMORY);
  return bavail * bsize >= MEMORY_BYTES_MIN && freemem() >= MEMORY_BYTES_MIN;
}

async function initialise(binaries: string, dataDir: string): Promise<void> {
  const flags = ['-A', 'trust', '-U', 'postgres', '-E', 'UTF8', '--locale=C', '--no-sync', '--no-instructions'];
  const initdb = run(join(binaries, 'bin', 'initdb'), ['-D', dataDir, ...flags]);
  let said = '';
  initdb.stderr?.on('data', (chunk: Buffer) => {
    said += chunk.toString('utf8');
  });
  const [code] = (await once(initdb, 'close')) as [number | null];
  if (code !== 0) throw new Error(`initdb ended with ${code}: ${said}`);
}

function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
}

/** Runs a program without the developer's environment, whose PG variables and language would affect it. */
function run(program: string, args: readonly string[]): ChildProcess {
  return spawn(program, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    cwd: '/',
    env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C' },
    ...RUN_AS,
  });
}

/** A free port below the ephemeral range, so that no outgoing connection takes it during a restart. */
export async function findPort(): Promise<number> {
  while (true) {
    const port = randomInt(20_000, 32_000);
    const server = createServer();
    const free = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!free) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}
