/** The server and the user's app, which find each other at the same addresses however often they are killed. */
import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ListeningProcess, startListening } from '../../../bench/child-process.ts';
import { DEVELOPMENT_TOKEN, startWaypost } from '../../../bench/waypost-process.ts';
import type { Diary } from './diary.ts';
import type { LibraryChoice } from './libraries.ts';

export type Victim = 'server' | 'app' | 'both';

export interface ProcessesOptions {
  /** Of the server's data and the app's diary. */
  folder: string;
  /** More settings of the server, as flags. */
  flags: string[];
  /** What serves the app's workflows. */
  library: LibraryChoice;
  diary: Diary;
  diaryPath: string;
}

const APP = fileURLToPath(new URL('./app-process.ts', import.meta.url));
// The kernel gives ports from 32768 to connections: below, nobody gets that of a dead process but by asking for it.
const PORTS = { min: 20_000, max: 32_000 };

export class Processes {
  readonly dataDir: string;
  readonly serverUrl: string;
  readonly appUrl: string;
  readonly killed = { server: 0, app: 0 };
  readonly #options: ProcessesOptions;
  readonly #ports: { server: number; app: number };
  #server: ListeningProcess | undefined;
  #app: ListeningProcess | undefined;

  private constructor(options: ProcessesOptions, ports: { server: number; app: number }) {
    this.dataDir = join(options.folder, 'data');
    this.serverUrl = `http://127.0.0.1:${ports.server}`;
    this.appUrl = `http://127.0.0.1:${ports.app}`;
    this.#options = options;
    this.#ports = ports;
  }

  static async prepare(options: ProcessesOptions): Promise<Processes> {
    const server = await freePort();
    return new Processes(options, { server, app: await freePort(server) });
  }

  /** Starts whichever is not there. */
  async start(): Promise<void> {
    const env = { QSTASH_URL: this.serverUrl, QSTASH_TOKEN: DEVELOPMENT_TOKEN };
    const { diaryPath, flags, library } = this.#options;
    this.#app ??= await startListening([APP, String(this.#ports.app), diaryPath, library], { env });
    if (this.#server) return;
    // Before it is there again, all that the one before has sent must be in the diary.
    if (this.killed.server > 0) await this.#noteServerEnded();
    this.#server = await startWaypost({ dataDir: this.dataDir, flags, port: this.#ports.server });
  }

  async kill(victim: Victim): Promise<void> {
    if (victim !== 'server') {
      await this.#app?.end('SIGKILL');
      this.#app = undefined;
      this.killed.app += 1;
    }
    if (victim !== 'app') {
      await this.#server?.end('SIGKILL');
      this.#server = undefined;
      this.killed.server += 1;
    }
  }

  /** Asks the server to end in order, so that its data can be looked at. */
  async endServer(): Promise<void> {
    await this.#server?.end('SIGTERM');
    this.#server = undefined;
  }

  async close(): Promise<void> {
    await Promise.all([this.#server?.end('SIGKILL'), this.#app?.end('SIGKILL')]);
  }

  async #noteServerEnded(): Promise<void> {
    const answer = await fetch(`${this.appUrl}/senders-gone`, { method: 'POST' });
    if (!answer.ok) throw new Error('connections outlive the server that made them');
    this.#options.diary.write({ kind: 'server ended' });
  }
}

/** By chance, not by a seed: others look for ports at the same time. */
async function freePort(taken?: number): Promise<number> {
  for (;;) {
    const port = randomInt(PORTS.min, PORTS.max);
    if (port !== taken && (await isFree(port))) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });
}
