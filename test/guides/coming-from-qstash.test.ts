/** Follows docs/coming-from-qstash.md. A project plays the former service. */
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { Client, custom, Receiver } from '@upstash/qstash';
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest';
import type { Waypost, WaypostProject } from '../../src/testing/types.ts';
import { startWaypost } from '../../src/testing/waypost.ts';
import { listen, originOf } from '../support/listen.ts';
import { blocksOf } from '../support/pages.ts';
import { Reader } from './reader.ts';

let waypost: Waypost;
let old: WaypostProject;
let from: Client;
let to: Client;
beforeAll(async () => {
  waypost = await startWaypost();
  old = await waypost.project();
  from = new Client({ baseUrl: old.url, token: old.token });
  to = new Client({ baseUrl: waypost.url, token: waypost.token });
});
afterAll(() => waypost.stop());

it('copies URL groups, queues and schedules, as often as it is run', async () => {
  const endpoints = [{ name: 'stock', url: 'http://127.0.0.1:3000/stock' }];
  await from.urlGroups.addEndpoints({ name: 'order-placed', endpoints });
  await from.queue({ queueName: 'invoices' }).upsert({ parallelism: 3, paused: true });
  await from.schedules.create({ destination: 'order-placed', cron: '@hourly', scheduleId: 'plain' });
  await from.schedules.create({
    destination: 'http://127.0.0.1:3000/report',
    cron: 'CRON_TZ=Europe/Berlin 30 7 * * *',
    scheduleId: 'all',
    body: '{"kind":"morning"}',
    method: 'PUT',
    retries: 7,
    retryDelay: '1000 * retried',
    delay: 90,
    timeout: 30,
    headers: { 'Content-Type': 'application/json', 'X-Shop': 'eu' },
    callback: 'http://127.0.0.1:3000/done',
    failureCallback: 'http://127.0.0.1:3000/failed',
    label: ['one', 'two'],
    queueName: 'invoices',
    flowControl: { key: 'crm', rate: 5, parallelism: 2, period: '1m' },
  });
  vi.spyOn(console, 'log').mockReturnValue();
  vi.stubEnv('OLD_QSTASH_TOKEN', old.token);
  const reader = await Reader.open(waypost.env(), { 'https://qstash.upstash.io': old.url });
  onTestFinished(async () => {
    await reader.close();
    vi.restoreAllMocks();
  });
  const script = blocksOf('docs/coming-from-qstash.md').filter(({ file }) => file === 'move.mjs');
  reader.save([...script, ...script.map((block) => ({ ...block, file: 'again.mjs' }))]);
  await reader.run('move.mjs');
  await reader.run('again.mjs');

  const shown = async (client: Client) => ({
    groups: (await client.urlGroups.list()).map(({ name, endpoints: of }) => ({ name, of })),
    queues: (await client.queue().list()).map(({ name, parallelism, paused }) => ({ name, parallelism, paused })),
    schedules: (await client.schedules.list()).map(({ createdAt: _, isPaused: __, ...rest }) => rest),
  });
  expect(await shown(to)).toEqual(await shown(from));
  expect((await to.schedules.list()).map(({ isPaused }) => isPaused)).toEqual([true, true]);
});

it("calls the language models of others, and refuses those of the service's own", async () => {
  const paths: string[] = [];
  const baseUrl = await open((path) => void paths.push(path));
  const body = { model: 'some', messages: [{ role: 'user', content: 'hello' }] };
  const provider = custom({ baseUrl, token: 'secret' });
  await to.publishJSON({ api: { name: 'llm', provider }, body, callback: `${baseUrl}/answer` });
  await waypost.runUntilIdle();
  expect(paths).toEqual(['/v1/chat/completions', '/answer']);
  vi.spyOn(console, 'error').mockReturnValue();
  onTestFinished(() => void vi.restoreAllMocks());
  const own = to.publishJSON({ api: { name: 'llm' }, body, callback: `${baseUrl}/answer` });
  await expect(own).rejects.toThrow('invalid destination url');
});

it('lets a receiver that holds one key of each service take the deliveries of both', async () => {
  const receiver = new Receiver({
    currentSigningKey: old.signingKeys.current,
    nextSigningKey: waypost.signingKeys.current,
  });
  const taken: boolean[] = [];
  const url = await open(async (_, signature, body) => {
    taken.push(await receiver.verify({ signature, body }).catch(() => false));
  });
  const stranger = await waypost.project();
  for (const client of [from, to, new Client({ baseUrl: stranger.url, token: stranger.token })]) {
    await client.publish({ url, body: 'hello' });
    await waypost.runUntilIdle();
  }
  expect(taken).toEqual([true, true, false]);
});

/** An endpoint that answers 200 once it has looked at what came. */
async function open(look: (path: string, signature: string, body: string) => void | Promise<void>): Promise<string> {
  const app = createServer(async (request, response) => {
    await look(request.url ?? '', String(request.headers['upstash-signature']), await text(request));
    response.end();
  });
  await listen(app);
  onTestFinished(() => void app.close());
  return originOf(app);
}
