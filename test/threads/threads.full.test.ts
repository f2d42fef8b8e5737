/** As threads.test.ts, on PostgreSQL. */
import type { ServerResponse } from 'node:http';
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
    expect(await server.ended()).toMatchObject({ code: 0, stderr: '' });
    expect((await client.query('select key from messages')).rows).toEqual([]);
  } finally {
    await client.end();
  }
});
