/** The servers and the user's app, at the same addresses after each kill. */
import { fileURLToPath } from 'node:url';
import { type ListeningProcess, startListening } from '../../../bench/child-process.ts';
import { DEVELOPMENT_TOKEN } from '../../../bench/waypost-process.ts';
import { findPort } from '../../support/postgres/cluster.ts';
import type { Diary } from './diary.ts';
import type { LibraryChoice } from './libraries.ts';
import type { Servers } from './servers.ts';

export type Victim = 'server' | 'app' | 'both';

export interface ProcessesOptions {
  /** Ended by the caller that created them. */
  servers: Servers;
  /** The library that serves the app's workflows. */
  library: LibraryChoice;
  diary: Diary;
  diaryPath: string;
}

const APP = fileURLToPath(new URL('./app-process.ts', import.meta.url));

export class Processes {
  readonly appUrl: string;
  readonly killed = { server: 0, app: 0 };
  readonly #options: ProcessesOptions;
  readonly #appPort: number;
  #app: ListeningProcess | undefined;

  private constructor(options: ProcessesOptions, appPort: number) {
    this.appUrl = `http://127.0.0.1:${appPort}`;
    this.#options = options;
    this.#appPort = appPort;
  }

  static async prepare(options: ProcessesOptions): Promise<Processes> {
    return new Processes(options, await findPort());
  }

  /** Starts the processes that are not running. */
  async start(): Promise<void> {
    const { servers, diaryPath, library } = this.#options;
    const env = { QSTASH_URL: servers.url, QSTASH_TOKEN: DEVELOPMENT_TOKEN };
    this.#app ??= await startListening([APP, String(this.#appPort), diaryPath, library], { env });
    // Before another server starts, the diary must have everything that the previous server has sent.
    if (this.killed.server > 0 && servers.areDown) await this.#noteServerEnded();
    await servers.start();
  }

  async kill(victim: Victim): Promise<void> {
    if (victim !== 'server') {
      await this.#app?.end('SIGKILL');
      this.#app = undefined;
      this.killed.app += 1;
    }
    if (victim !== 'app') {
      await this.#options.servers.kill();
      this.killed.server += 1;
    }
  }

  async close(): Promise<void> {
    await this.#app?.end('SIGKILL');
  }

  async #noteServerEnded(): Promise<void> {
    const answer = await fetch(`${this.appUrl}/senders-gone`, { method: 'POST' });
    if (!answer.ok) throw new Error('connections outlive the server that made them');
    this.#options.diary.write({ kind: 'server ended' });
  }
}
