/** Starts servers on a data folder, and endpoints, and removes all of them after a test. */
import { mkdtempSync, rmSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type InProcessServer, serveInProcess } from './in-process-server.ts';
import { Endpoints } from './listen.ts';
import { WaypostProcess } from './waypost-process.ts';

export class Servers {
  readonly #folder = mkdtempSync(join(tmpdir(), 'waypost-servers-'));
  /** The data folder, which a server creates. */
  readonly dataDir = join(this.#folder, 'data');
  readonly #processes: WaypostProcess[] = [];
  readonly #inProcess: InProcessServer[] = [];
  readonly #endpoints = new Endpoints();

  /** Starts a serving command on the data folder and a free port, with its log as JSON. */
  start(args: readonly string[], env: Record<string, string> = {}): WaypostProcess {
    const [command = '', ...others] = args;
    const settings = ['--port', '0', '--data-dir', this.dataDir, '--log-format', 'json'];
    return this.run([command, ...settings, ...others], env);
  }

  /** Like `start`, but in this process. */
  async startInProcess(args: readonly string[], env: Record<string, string> = {}): Promise<InProcessServer> {
    const server = await serveInProcess([...args, '--data-dir', this.dataDir], env);
    this.#inProcess.push(server);
    return server;
  }

  /** Runs a command without additional settings. `output`: see `WaypostProcess`. */
  run(args: readonly string[], env: Record<string, string> = {}, output?: number): WaypostProcess {
    const process = new WaypostProcess(args, env, output);
    this.#processes.push(process);
    return process;
  }

  /** Returns the URL of the endpoint, without a trailing slash. */
  openEndpoint(handle: RequestListener): Promise<string> {
    return this.#endpoints.listen(handle);
  }

  async close(): Promise<void> {
    await Promise.all([
      ...this.#processes.map((process) => process.kill()),
      ...this.#inProcess.map((server) => server.stop()),
    ]);
    this.#endpoints.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
