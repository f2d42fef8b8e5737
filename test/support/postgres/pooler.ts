/** Starts a PgBouncer in front of a PostgreSQL server, which a test can stop and restart. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DEBIAN_ENV } from '../debian.ts';
import { RUN_AS } from './binaries.ts';
import { findPort, makeFolder } from './cluster.ts';
import { guard } from './guard.ts';

export interface PoolerOptions {
  /** The port of PostgreSQL on this machine. */
  port: number;
  /** The maximum number of connections to each database. */
  poolSize: number;
  /** Settings of PgBouncer that override `SETTINGS`. */
  settings?: Readonly<Record<string, string>>;
}

export const PROGRAM = 'pgbouncer';
const USER = 'postgres';

/** The settings of docs/operations.md, except for authentication. */
const SETTINGS: Readonly<Record<string, string>> = {
  listen_addr: '127.0.0.1',
  unix_socket_dir: '',
  auth_type: 'trust',
  pool_mode: 'transaction',
  max_client_conn: '1000',
  server_login_retry: '1',
};

/** Whether the installed version supports prepared statements per client: 1.21 or later. */
export function keepsStatementsApart(): boolean {
  const [, major, minor] =
    /^PgBouncer (\d+)\.(\d+)/.exec(spawnSync(PROGRAM, ['--version'], { env: DEBIAN_ENV, encoding: 'utf8' }).stdout) ??
    [];
  return Number(major) > 1 || (Number(major) === 1 && Number(minor) >= 21);
}

export class Pooler {
  /** Stays the same across restarts. */
  readonly port: number;
  readonly #folder: string;
  readonly #finish: () => Promise<void>;
  #server: ChildProcess | undefined;
  #log = '';

  private constructor(folder: string, port: number, finish: () => Promise<void>) {
    this.#folder = folder;
    this.port = port;
    this.#finish = finish;
  }

  /** Starts PgBouncer in transaction mode, on a random port of 127.0.0.1. The cluster's superuser is the only user. */
  static async open({ port: target, poolSize, settings }: PoolerOptions): Promise<Pooler> {
    const folder = makeFolder();
    const { finish } = guard(join(folder, 'pgbouncer.pid'), folder);
    const port = await findPort();
    const all = {
      ...SETTINGS,
      default_pool_size: String(poolSize),
      listen_port: String(port),
      auth_file: join(folder, 'users.txt'),
      pidfile: join(folder, 'pgbouncer.pid'),
      ...settings,
    };
    const lines = Object.entries(all).map(([name, value]) => `${name} = ${value}`);
    writeFileSync(join(folder, 'users.txt'), `"${USER}" ""\n`);
    writeFileSync(
      join(folder, 'pgbouncer.ini'),
      ['[databases]', `* = host=127.0.0.1 port=${target}`, '[pgbouncer]', ...lines, ''].join('\n'),
    );
    const pooler = new Pooler(folder, port, finish);
    try {
      await pooler.start();
    } catch (error) {
      await finish();
      throw error;
    }
    return pooler;
  }

  /** `url` with this pooler's port. */
  through(url: string): string {
    const changed = new URL(url);
    changed.port = String(this.port);
    return changed.href;
  }

  /** The log of PgBouncer since the latest start. */
  get log(): string {
    return this.#log;
  }

  /** Resolves when PgBouncer accepts connections. */
  async start(): Promise<void> {
    const server = spawn(PROGRAM, ['pgbouncer.ini'], {
      stdio: ['ignore', 'ignore', 'pipe'],
      cwd: this.#folder,
      env: DEBIAN_ENV,
      ...RUN_AS,
    });
    this.#log = '';
    const ready = new Promise<true>((resolve) => {
      server.stderr.on('data', (chunk: Buffer) => {
        this.#log = (this.#log + chunk.toString('utf8')).slice(-65_536);
        if (this.#log.includes('process up')) resolve(true);
      });
    });
    if ((await Promise.race([ready, once(server, 'close')])) !== true)
      throw new Error(`PgBouncer ended instead of starting: ${this.#log}`);
    this.#server = server;
  }

  /** Stops PgBouncer as in a crash: all connections end immediately. */
  async kill(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    const exited = once(server, 'exit');
    server.kill('SIGKILL');
    await exited;
    this.#server = undefined;
  }

  /** Stops PgBouncer and removes its folder. */
  async close(): Promise<void> {
    await this.kill();
    await this.#finish();
  }
}
