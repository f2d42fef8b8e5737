/** Follows the instructions of a page: saves the files, starts the app, runs the commands. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { Server as HttpServer } from 'node:http';
import { Server } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { vi } from 'vitest';
import type { WaypostEnvironment } from '../../src/testing/types.ts';
import { freePort } from '../support/free-port.ts';
import type { Block } from '../support/pages.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Only the published package has it under its own name. */
const TEST_KIT = new URL('../../src/testing/waypost.ts', import.meta.url).href;

/** What some frameworks replace for the whole process, with something that differs. */
const { Request: request, Response: response } = Object.getOwnPropertyDescriptors(globalThis);
const GLOBALS = { Request: request, Response: response };

/** In a folder of its own, with apps on a free port in place of 3000 and the server of `env` in place of the usual one. */
export class Reader {
  readonly folder = mkdtempSync(join(tmpdir(), 'waypost-reader-'));
  readonly appUrl: string;
  readonly #env: WaypostEnvironment;
  readonly #places: Readonly<Record<string, string>>;
  readonly #servers = new Set<Server>();

  private constructor(env: WaypostEnvironment, port: number, places: Readonly<Record<string, string>>) {
    this.#env = env;
    this.#places = places;
    this.appUrl = `http://127.0.0.1:${port}`;
    symlinkSync(join(ROOT, 'node_modules'), join(this.folder, 'node_modules'));
    // As `npm init -y` has it.
    writeFileSync(join(this.folder, 'package.json'), '{"type":"commonjs"}');
    const lines = Object.entries(env).map(([name, value]) => `${name}=${value}\n`);
    writeFileSync(join(this.folder, '.env'), lines.join(''));
  }

  /** `places`: what else is elsewhere than the pages say, such as `https://api.example.com`. */
  static async open(env: WaypostEnvironment, places: Readonly<Record<string, string>> = {}): Promise<Reader> {
    return new Reader(env, await freePort(), places);
  }

  save(blocks: readonly Block[]): void {
    for (const { file, code } of blocks) {
      if (file === undefined) continue;
      mkdirSync(dirname(join(this.folder, file)), { recursive: true });
      writeFileSync(join(this.folder, file), this.here(code));
    }
  }

  /** Runs a file in this process, as `node --env-file=.env` does in one of its own. Resolves once its servers listen. */
  async run(file: string): Promise<Record<string, unknown>> {
    for (const [name, value] of Object.entries(this.#env)) vi.stubEnv(name, value);
    const { listen } = Server.prototype;
    const listening: Promise<unknown>[] = [];
    const servers = this.#servers;
    const spy = vi.spyOn(Server.prototype, 'listen').mockImplementation(function (this: Server, ...args) {
      servers.add(this);
      listening.push(once(this, 'listening'));
      return listen.apply(this, args);
    });
    const module = await import(join(this.folder, file)).finally(() => spy.mockRestore());
    await Promise.all(listening);
    return module;
  }

  /** Types a command into a shell that knows nothing of `.env`, and answers what it printed. */
  async type(command: string): Promise<string> {
    const env = { PATH: process.env['PATH'], HOME: this.folder };
    const options = { cwd: this.folder, env, timeout: 30_000 };
    const { stdout } = await promisify(execFile)('bash', ['-euc', this.here(command)], options);
    return stdout;
  }

  /** Ends the apps that run. */
  async stop(): Promise<void> {
    for (const server of this.#servers) {
      const closed = server.listening && once(server, 'close');
      server.close();
      if (server instanceof HttpServer) server.closeAllConnections();
      await closed;
    }
    this.#servers.clear();
  }

  async close(): Promise<void> {
    vi.unstubAllEnvs();
    await this.stop();
    Object.defineProperties(globalThis, GLOBALS);
    rmSync(this.folder, { recursive: true });
  }

  /** The text with the addresses of this test in place of those that pages have. */
  here(text: string): string {
    const placed = Object.entries(this.#places).reduce((before, [from, to]) => before.replaceAll(from, to), text);
    return placed
      .replaceAll("'waypost/testing'", `'${TEST_KIT}'`)
      .replaceAll('http://127.0.0.1:8080', this.#env.QSTASH_URL)
      .replaceAll(/\b3000\b/g, new URL(this.appUrl).port);
  }
}
