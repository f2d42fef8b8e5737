/** Debian's Redis, configured so that no acknowledged write is lost: every write is synced before its acknowledgement. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../test/support/free-port.ts';

export interface RedisServer {
  url: string;
  pid: number;
  version: string;
  end(): Promise<void>;
}

const PROGRAM = 'redis-server';
const START_LIMIT_MS = 20_000;

/** Starts on an empty folder. Throws if Redis is not installed. */
export async function startRedis(): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), 'waypost-redis-'));
  const port = await freePort();
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', ''];
  const child = spawn(PROGRAM, [...args, '--appendonly', 'yes', '--appendfsync', 'always'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  let output = '';
  const ready = new Promise<'ready'>((resolve) => {
    child.stdout.on('data', (chunk: Buffer) => {
      if (output.length < 65_536) output += chunk.toString('utf8');
      if (output.includes('Ready to accept connections')) resolve('ready');
    });
  });
  const limit = setTimeout(() => child.kill('SIGKILL'), START_LIMIT_MS);
  const first = await Promise.race([ready, exited]);
  clearTimeout(limit);
  if (first !== 'ready' || child.pid === undefined) throw new Error(`Redis did not start: ${output}`);
  return {
    url: `redis://127.0.0.1:${port}`,
    pid: child.pid,
    version: /v=(\S+)/.exec(spawnSync(PROGRAM, ['--version'], { encoding: 'utf8' }).stdout)?.[1] ?? 'unknown',
    async end() {
      child.kill('SIGKILL'); // its data is no longer needed
      await exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Installs Debian's package if Redis is missing. The system's own service is not started. */
export function installRedis(): void {
  if (spawnSync(PROGRAM, ['--version']).error === undefined) return;
  const { status, stderr } = spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', PROGRAM], {
    encoding: 'utf8',
    // At run level 1, Debian's scripts start no services.
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' },
  });
  if (status !== 0) throw new Error(`the comparison with BullMQ needs ${PROGRAM}; output of apt-get: ${stderr}`);
}
