/** Runs the command line as a child process, as users do. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { eventually } from './eventually.ts';

const MAIN = fileURLToPath(new URL('../../bin/waypost.js', import.meta.url));

export interface ProcessResult {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

export class WaypostProcess {
  readonly #child: ChildProcess;
  readonly #closed: Promise<[number | null, NodeJS.Signals | null]>;
  stdout = '';
  stderr = '';

  /**
   * `env` replaces the whole environment, so that settings of the developer's shell have no effect. `output`: an open file
   * descriptor that receives standard output instead of the test. `nodeOptions` are options of Node itself.
   */
  constructor(
    args: readonly string[],
    env: Record<string, string> = {},
    output?: number,
    nodeOptions: readonly string[] = [],
  ) {
    this.#child = spawn(process.execPath, [...nodeOptions, MAIN, ...args], {
      stdio: ['ignore', output ?? 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'] ?? '', ...env },
    });
    this.#child.stdout?.on('data', (chunk: Buffer) => {
      this.stdout += chunk.toString('utf8');
    });
    this.#child.stderr?.on('data', (chunk: Buffer) => {
      this.stderr += chunk.toString('utf8');
    });
    this.#closed = once(this.#child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** The events of the JSON log so far. */
  events(): Record<string, unknown>[] {
    const lines = this.stdout.split('\n').filter((line) => line.startsWith('{"level"'));
    return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  /** Resolves to the URL in the JSON log when the server listens. */
  async url(): Promise<string> {
    const event = await eventually(
      () => `the server to listen; it said: ${this.stdout}${this.stderr}`,
      () => this.events().find(({ event: name }) => name === 'listening') ?? this.#child.exitCode !== null,
    );
    if (event === true) throw new Error(`the server ended instead of listening: ${this.stderr}`);
    return String(event['url']);
  }

  /** Resolves when standard error satisfies `isEnough`, or when the process has ended. */
  async waitForStderr(isEnough: (stderr: string) => boolean): Promise<void> {
    const enough = new Promise<void>((resolve) => {
      const check = () => {
        if (isEnough(this.stderr)) resolve();
      };
      this.#child.stderr?.on('data', check);
      check();
    });
    await Promise.race([enough, this.#closed]);
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  async waitForExit(): Promise<ProcessResult> {
    const [code, signal] = await this.#closed;
    return { code, signal, stdout: this.stdout, stderr: this.stderr };
  }

  /** Kills the process at the end of a test. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#closed;
  }
}

/** Runs a command that ends by itself. */
export function runWaypost(args: readonly string[], env: Record<string, string> = {}): Promise<ProcessResult> {
  return new WaypostProcess(args, env).waitForExit();
}
