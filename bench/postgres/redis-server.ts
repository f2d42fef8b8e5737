/** Debian's Redis as it has to be run so that it loses nothing that it has answered: every write is synced first. */
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

/** On an empty folder. Throws when there is no Redis and none can be installed. */
export async function startRedis(): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), 'waypost-redis-'));
  const port = await freePort();
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', ''];
  const child = spawn(PROGRAM, [...args, '--appendonly', 'yes', '--appendfsync', 'always'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  let said = '';
  const ready = new Promise<'ready'>((resolve) => {
    child.stdout.on('data', (chunk: Buffer) => {
      if (said.length < 65_536) said += chunk.toString('utf8');
      if (said.includes('Ready to accept connections')) resolve('ready');
    });
  });
  const limit = setTimeout(() => child.kill('SIGKILL'), START_LIMIT_MS);
  const first = await Promise.race([ready, exited]);
  clearTimeout(limit);
  if (first !== 'ready' || child.pid === undefined) throw new Error(`Redis did not start: ${said}`);
  return {
    url: `redis://127.0.0.1:${port}`,
    pid: child.pid,
    version: /v=(\S+)/.exec(spawnSync(PROGRAM, ['--version'], { encoding: 'utf8' }).stdout)?.[1] ?? 'unknown',
    async end() {
      child.kill('SIGKILL'); // nothing of it is needed any more
      await exited;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Installs Debian's package when there is none. No server of the system's own is started. */
export function installRedis(): void {
  if (spawnSync(PROGRAM, ['--version']).error === undefined) return;
  const { status, stderr } = spawnSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', PROGRAM], {
    encoding: 'utf8',
    // At run level 1 Debian's scripts start nothing.
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' },
  });
  if (status !== 0) throw new Error(`the comparison with BullMQ needs ${PROGRAM}; apt-get said: ${stderr}`);
}
