/** A server keeps every body unchanged on a database whose defaults change how values are written and read. */
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { testFolder } from '../support/folder.ts';
import { type InProcessServer, serveInProcess } from '../support/in-process-server.ts';
import { listen, originOf } from '../support/listen.ts';
import { makeHostile } from '../support/postgres/hostile.ts';
import { freshDatabase } from '../support/postgres/shared.ts';
import { outputOf } from '../support/waypost-command.ts';

const TEXT = '{"hello":"wörld \\\\ \'漢\'"}';
const BYTES = Buffer.from([0x5c, 0x78, 0x00, 0xff, 0x5c, 0x5c, 0x27, 0x80]);

let folder: string;
let endpoint: Server;
let server: InProcessServer | undefined;
/** The received bodies, by path. */
let received: Map<string, Buffer>;

beforeEach(async () => {
  folder = testFolder();
  received = new Map();
  endpoint = createServer(async (request, response) => {
    received.set(request.url ?? '', Buffer.concat(await request.toArray()));
    response.writeHead(request.url === '/fails' ? 500 : 200).end(request.url === '/fails' ? BYTES : '');
  });
  await listen(endpoint);
});
afterEach(async () => {
  await server?.stop();
  endpoint.close();
});

const done = (env: Record<string, string>, ...args: string[]): Promise<string> => outputOf(args, env);

it('through deliveries, the DLQ, schedules, a backup and a restore', async () => {
  const common = { WAYPOST_DATA_DIR: folder, WAYPOST_ALLOW_DESTINATIONS: '127.0.0.1' };
  const env = { ...common, DATABASE_URL: await makeHostile(await freshDatabase()) };
  const token = /^QSTASH_TOKEN=(.*)$/m.exec(await done(env, 'init'))?.[1] ?? '';
  server = await serveInProcess(['serve'], env);
  const target = originOf(endpoint);
  const authorization = `Bearer ${token}`;
  const post = async (path: string, body: string | Buffer, headers: Record<string, string> = {}) => {
    const response = await fetch(`${server?.url}${path}`, {
      method: 'POST',
      headers: { authorization, ...headers },
      body,
    });
    expect(response.ok).toBe(true);
    return (await response.json()) as { messageId: string; scheduleId: string };
  };
  const get = async (path: string) => (await fetch(`${server?.url}${path}`, { headers: { authorization } })).json();

  await post(`/v2/publish/${target}/text`, TEXT, { 'upstash-delay': '1s' });
  await post(`/v2/publish/${target}/bytes`, BYTES, { 'upstash-delay': '1s' });
  await post(`/v2/publish/${target}/fails`, BYTES, { 'upstash-retries': '0', 'upstash-delay': '1s' });
  const { scheduleId } = await post(`/v2/schedules/${target}/scheduled`, TEXT, { 'upstash-cron': '0 0 1 1 *' });
  const readDead = async () => ((await get('/v2/dlq')) as { messages: Record<string, unknown>[] }).messages;
  await eventually('all are delivered', async () => received.size === 3 && (await readDead()).length === 1);
  expect(received.get('/text')?.toString()).toBe(TEXT);
  expect(received.get('/bytes')).toEqual(BYTES);
  expect(received.get('/fails')).toEqual(BYTES);
  const bodies = { bodyBase64: BYTES.toString('base64'), responseBodyBase64: BYTES.toString('base64') };
  expect(await readDead()).toEqual([expect.objectContaining(bodies)]);
  expect(await get(`/v2/schedules/${scheduleId}`)).toMatchObject({ body: TEXT });
  await server.stop();

  const backup = join(folder, 'backup.db');
  await done(env, 'backup', '--to', backup);
  const restored = { ...common, DATABASE_URL: await makeHostile(await freshDatabase()) };
  await done(restored, 'restore', '--from', backup);
  server = await serveInProcess(['serve'], restored);
  expect(await readDead()).toEqual([expect.objectContaining(bodies)]);
  expect(await get(`/v2/schedules/${scheduleId}`)).toMatchObject({ body: TEXT });
  received.clear();
  await post(`/v2/dlq/retry/${String((await readDead())[0]?.['dlqId'])}`, '');
  await eventually('the dead letter is delivered again', () => received.get('/fails') !== undefined);
  expect(received.get('/fails')).toEqual(BYTES);
});
