/** Repeats threads.test.ts on PostgreSQL, with a worker that crashes, and with another server that uses the same port. */
import { writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { freshDatabase } from '../support/postgres/shared.ts';
import { Servers } from '../support/servers.ts';
import { call, times } from './calls.ts';
import { seeAll } from './streams.ts';

let servers: Servers;
beforeEach(() => {
  servers = new Servers();
});
afterEach(() => servers.close());

it('runs them on PostgreSQL, each on connections of its own', async () => {
  const url = await freshDatabase();
  const client = new pg.Client(url);
  await client.connect();
  try {
    const server = servers.start(['dev', '--workers', '2', '--database-url', url]);
    const base = await server.url();
    const quick = await servers.openEndpoint((_request, response) => response.end());
    const { seen, expected } = await seeAll(base, quick);
    for (const stream of seen) expect(stream).toEqual(expected);
    const held: ServerResponse[] = [];
    const endpoint = await servers.openEndpoint((_request, response) => held.push(response));
    await Promise.all(times(40, () => call('POST', `${base}/v2/publish/${endpoint}`)));
    await eventually('all attempts', () => held.length === 40);
    const { rows } = await client.query('select distinct worker from messages where claim_token is not null');
    expect(rows).toHaveLength(2);
    for (const response of held) response.end();
    server.signal('SIGTERM');
    expect(await server.waitForExit()).toMatchObject({ code: 0, stderr: '' });
    expect((await client.query('select key from messages')).rows).toEqual([]);
  } finally {
    await client.end();
  }
});

it('ends as a whole when one worker dies, and the next start makes its attempts again', async () => {
  const trigger = join(servers.dataDir, 'now');
  const preload = pathToFileURL(join(import.meta.dirname, 'planted-defect.ts')).href;
  const env = { NODE_OPTIONS: `--import=${preload}`, PLANTED_DEFECT_WHEN: trigger };
  const first = servers.start(['dev', '--workers', '2'], env);
  const url = await first.url();
  const attempts: { id: string; response: ServerResponse }[] = [];
  const endpoint = await servers.openEndpoint((incoming, response) => {
    attempts.push({ id: String(incoming.headers['upstash-message-id']), response });
    if (attempts.length > 20) response.end();
  });
  await Promise.all(times(20, () => call('POST', `${url}/v2/publish/${endpoint}`)));
  await eventually('the attempts', () => attempts.length === 20);
  writeFileSync(trigger, '');
  expect((await first.waitForExit()).code).toBe(70);
  const ended = first.events().find(({ event }) => event === 'worker_ended');
  expect(ended?.['error']).toContain('a planted defect');
  expect(ended?.['error']).toContain('planted-defect.ts'); // where it happened
  const second = servers.start(['dev', '--workers', '2']);
  await second.url();
  await eventually('the attempts again', () => attempts.length === 40);
  const [before, after] = [attempts.slice(0, 20), attempts.slice(20)].map((some) =>
    some.map(({ id }) => id).toSorted(),
  );
  expect(after).toEqual(before);
  expect(second.events().find(({ event }) => event === 'recovered')).toMatchObject({ count: 20 });
});

it('keeps its port: another server with several workers is refused there too', async () => {
  const url = await servers.start(['dev', '--memory', '--workers', '2']).url();
  const { port } = new URL(url);
  const { code, stderr } = await servers.run(['dev', '--memory', '--workers', '2', '--port', port]).waitForExit();
  expect([code, stderr]).toEqual([
    1,
    `waypost: port ${port} on 127.0.0.1 is in use: choose another with --port or PORT\n`,
  ]);
});
