import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, lstatSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../eventually.ts';
import { copyBinaries, findBinaries } from './binaries.ts';
import { type Cluster, makeFolder, startCluster } from './cluster.ts';
import { freshDatabase, sharedCluster } from './shared.ts';

describe.each([14, 18] as const)('a cluster of PostgreSQL %i', (version) => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await startCluster({ version });
  });
  afterAll(() => cluster.dispose());

  it('is of that version, and listens on this machine only', async () => {
    const [row] = await cluster.query(
      "select current_setting('server_version_num') version, inet_server_addr() address",
    );
    expect(Math.trunc(Number(row?.['version']) / 10_000)).toBe(version);
    expect(row?.['address']).toBe('127.0.0.1');
  });

  it('makes databases that know nothing of each other', async () => {
    const urls = [await cluster.createDatabase(), await cluster.createDatabase()];
    const names = urls.map((url) => new URL(url).pathname.slice(1));
    await cluster.query('create table t (n int)', [], names[0]);
    expect(await cluster.query("select to_regclass('t') found", [], names[0])).toEqual([{ found: 't' }]);
    expect(await cluster.query("select to_regclass('t') found", [], names[1])).toEqual([{ found: null }]);
  });

  it('keeps what was committed when it is killed, and comes back on the same port', async () => {
    await cluster.query('create table kept (n int); insert into kept values (1)');
    await cluster.kill();
    await expect(cluster.query('select 1')).rejects.toThrow(/ECONNREFUSED|terminat|shutting down/);
    await cluster.start();
    expect(await cluster.query('select n from kept')).toEqual([{ n: 1 }]);
    await cluster.restart('immediate');
    expect(await cluster.query('select n from kept')).toEqual([{ n: 1 }]);
  });
});

it('ends the server and removes its folder when the process that started it is killed', async () => {
  const program = `
    import { startCluster } from '${new URL('cluster.ts', import.meta.url)}';
    const { dataDir, port } = await startCluster();
    console.log(JSON.stringify({ dataDir, port }));
    setInterval(() => {}, 1000);
  `;
  const owner = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(owner.stdout, 'data')) as [Buffer];
  const { dataDir, port } = JSON.parse(line.toString('utf8')) as { dataDir: string; port: number };
  expect(existsSync(join(dataDir, 'postmaster.pid'))).toBe(true);
  owner.kill('SIGKILL');
  await eventually('the folder to go', () => !existsSync(dirname(dataDir)));
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  server.close();
});

it('makes the links that a package lacks in a copy of it', () => {
  const folder = makeFolder();
  try {
    const incomplete = copyBinaries(findBinaries(18, folder), join(folder, 'incomplete'));
    rmSync(join(incomplete, 'lib', 'libpq.so.5'));
    const complete = copyBinaries(incomplete, join(folder, 'complete'));
    expect(lstatSync(join(complete, 'lib', 'libpq.so.5')).isSymbolicLink()).toBe(true);
    expect(existsSync(join(complete, 'lib', 'libpq.so.5'))).toBe(true);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it('gives each test of a run a database of its own on one cluster', async () => {
  const [first, second, shared] = await Promise.all([freshDatabase(), freshDatabase(), sharedCluster()]);
  expect(first).not.toBe(second);
  expect(new Set([first, second].map((url) => new URL(url).port))).toEqual(new Set([String(shared.port)]));
});
