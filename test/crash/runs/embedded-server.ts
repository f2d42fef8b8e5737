/** One server with its store in a folder, at the same address after each kill. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { ListeningProcess } from '../../../bench/child-process.ts';
import { startWaypost } from '../../../bench/waypost-process.ts';
import { type Examination, examineStore } from '../../../src/admin/examine.ts';
import { parseConfig } from '../../../src/config/parse.ts';
import { findPort } from '../../support/postgres/cluster.ts';
import { databaseName, integrity, untilEmpty } from '../database-file.ts';
import type { Servers } from './servers.ts';

export class EmbeddedServer implements Servers {
  readonly url: string;
  readonly #dataDir: string;
  readonly #port: number;
  readonly #flags: string[];
  #server: ListeningProcess | undefined;

  private constructor(folder: string, port: number, flags: string[]) {
    this.url = `http://127.0.0.1:${port}`;
    this.#dataDir = join(folder, 'data');
    this.#port = port;
    this.#flags = flags;
    mkdirSync(this.#dataDir); // a server with a store in memory does not create the folder
  }

  static async prepare(folder: string, flags: string[] = []): Promise<EmbeddedServer> {
    return new EmbeddedServer(folder, await findPort(), flags);
  }

  get areDown(): boolean {
    return this.#server === undefined;
  }

  async start(): Promise<void> {
    this.#server ??= await startWaypost({ dataDir: this.#dataDir, flags: this.#flags, port: this.#port });
  }

  async kill(): Promise<void> {
    await this.#server?.end('SIGKILL');
    this.#server = undefined;
  }

  async end(): Promise<void> {
    await this.#server?.end('SIGTERM');
    this.#server = undefined;
  }

  async untilEmpty(): Promise<void> {
    if (this.#isThere()) await untilEmpty(this.#dataDir);
  }

  async examine(): Promise<Examination | undefined> {
    return this.#isThere() ? examineStore(parseConfig({}, ['--data-dir', this.#dataDir])) : undefined;
  }

  integrity(): string[] {
    return integrity(this.#dataDir);
  }

  close(): Promise<void> {
    return this.kill();
  }

  #isThere(): boolean {
    return databaseName(this.#dataDir) !== undefined;
  }
}
