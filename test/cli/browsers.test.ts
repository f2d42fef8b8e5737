/** The web pages and host names that both kinds of server allow by default (decision 026). */
import { request } from 'node:http';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Servers } from '../support/servers.ts';
import { giveCommand } from '../support/waypost-command.ts';

let servers: Servers;
beforeEach(() => {
  servers = new Servers();
});
afterEach(() => servers.close());

function statusOf(url: string, headers: Record<string, string>): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    request(`${url}/healthz`, { headers }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .on('error', reject)
      .end();
  });
}

const HOSTED = { origin: 'https://console.upstash.com' };
const STRANGE_NAME = { host: 'evil.example' };

it('a development server answers the hosted console alone, and to no name that a stranger can have', async () => {
  const { url } = await servers.startInProcess(['dev']);
  expect(await statusOf(url, HOSTED)).toBe(200);
  expect(await statusOf(url, { origin: 'http://localhost:3000' })).toBe(403);
  expect(await statusOf(url, STRANGE_NAME)).toBe(403);
});

it('a development server answers pages and to names that it is told of, and then no others', async () => {
  const told = ['--allow-origins', 'http://localhost:3000', '--allow-hosts', 'evil.example'];
  const { url } = await servers.startInProcess(['dev', ...told]);
  expect(await statusOf(url, HOSTED)).toBe(403);
  expect(await statusOf(url, { origin: 'http://localhost:3000' })).toBe(200);
  expect(await statusOf(url, STRANGE_NAME)).toBe(200);
});

it('a production server answers no page, and to any name', async () => {
  await giveCommand(['init', '--data-dir', servers.dataDir]);
  const { url } = await servers.startInProcess(['serve']);
  expect(await statusOf(url, HOSTED)).toBe(403);
  expect(await statusOf(url, STRANGE_NAME)).toBe(200);
});

it('an origin that is none keeps a server from starting, and the line names the setting', async () => {
  const { code, stderr } = await servers.start(['dev', '--allow-origins', '*']).waitForExit();
  expect([code, stderr]).toEqual([
    1,
    'waypost: WAYPOST_ALLOW_ORIGINS: not an origin such as https://console.example.com: *\n',
  ]);
});
