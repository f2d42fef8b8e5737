/** A server and its data folder: when another process uses it or has used it, and what the folder keeps after the server. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@upstash/qstash';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { DEVELOPMENT_TOKEN } from '../../bench/waypost-process.ts';
import { lockFile } from '../../src/store/drivers/sqlite/lock.ts';
import { eventually } from '../support/eventually.ts';
import { Servers } from '../support/servers.ts';
import { giveCommand } from '../support/waypost-command.ts';
import type { WaypostProcess } from '../support/waypost-process.ts';

let servers: Servers;
beforeEach(() => {
  servers = new Servers();
});
afterEach(() => servers.close());

const startDev = (...args: string[]) => servers.start(['dev', ...args]);
const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });

it('refuses the folder that another server uses, saying who, and a port that is taken, in one line', async () => {
  const { port } = new URL(await servers.start(['dev']).url());
  const [sameFolder, samePort] = await Promise.all([
    servers.start(['dev']).waitForExit(),
    servers.run(['dev', '--memory', '--port', port]).waitForExit(),
  ]);
  expect(sameFolder.code).toBe(1);
  expect(sameFolder.stderr).toMatch(/^waypost: the database .* is in use by process \d+.*\n$/);
  expect([samePort.code, samePort.stderr]).toEqual([
    1,
    `waypost: port ${port} on 127.0.0.1 is in use: choose another with --port or PORT\n`,
  ]);
});

it('waits for a command that has the folder for a moment, and says so', async () => {
  mkdirSync(servers.dataDir);
  const lock = lockFile(join(servers.dataDir, 'waypost.db'));
  const server = servers.start(['dev']);
  const [waiting] = await eventually('the server to wait', () => server.events().length > 0 && server.events());
  expect(waiting).toMatchObject({
    event: 'waiting_for_database',
    reason: expect.stringContaining(`in use by process ${process.pid}, running since`),
  });
  lock.release();
  expect((await fetch(`${await server.url()}/readyz`)).status).toBe(200);
});

it('opens no door in production with a folder from development', async () => {
  const development = servers.start(['dev']);
  await development.url();
  development.signal('SIGTERM');
  await development.waitForExit();
  expect((await servers.start(['serve']).waitForExit()).stderr).toContain('no token yet');
  await giveCommand(['init', '--data-dir', servers.dataDir]);
  const production = servers.start(['serve']);
  const url = await production.url();
  expect((await fetch(`${url}/v2/keys`, { headers: bearer(DEVELOPMENT_TOKEN) })).status).toBe(401);
  await production.kill(); // or its lock would keep the other out, whatever is in the folder
  expect(await servers.start(['dev']).waitForExit()).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('this data folder has tokens of its own'),
  });
});

it('keeps messages and rotated keys over a restart', async () => {
  const first = startDev();
  const client = new Client({ baseUrl: await first.url(), token: DEVELOPMENT_TOKEN });
  const { messageId } = await client.publish({ url: 'http://127.0.0.1:9', delay: 3600 });
  const rotated = await fetch(`${await first.url()}/v2/keys/rotate`, {
    method: 'POST',
    headers: bearer(DEVELOPMENT_TOKEN),
  });
  const keys = await rotated.json();
  first.signal('SIGINT');
  expect((await first.waitForExit()).code).toBe(0);

  const second = startDev();
  const again = new Client({ baseUrl: await second.url(), token: DEVELOPMENT_TOKEN });
  expect((await again.messages.get(messageId)).url).toBe('http://127.0.0.1:9');
  const answer = await fetch(`${await second.url()}/v2/keys`, { headers: bearer(DEVELOPMENT_TOKEN) });
  expect(await answer.json()).toEqual(keys);
});

it('keeps to the limits that are set, to that of a day over a kill too', async () => {
  const startLimited = () => startDev('--messages-per-day-max', '2', '--requests-per-second-max', '3');
  const statusOf = async (server: WaypostProcess, method: string, path: string): Promise<number> =>
    (
      await fetch(`${await server.url()}${path}`, {
        method,
        headers: { ...bearer(DEVELOPMENT_TOKEN), 'upstash-delay': '1h' },
      })
    ).status;
  const first = startLimited();
  expect(await statusOf(first, 'POST', '/v2/publish/http://127.0.0.1:9/')).toBe(200);
  await first.kill();
  const second = startLimited();
  const statuses: number[] = [];
  for (let publish = 0; publish < 2; publish += 1) {
    statuses.push(await statusOf(second, 'POST', '/v2/publish/http://127.0.0.1:9/'));
  }
  expect(statuses).toEqual([200, 429]);
  const reads = await Promise.all(Array.from({ length: 12 }, () => statusOf(second, 'GET', '/v2/keys')));
  expect(new Set(reads)).toEqual(new Set([200, 429]));
});
