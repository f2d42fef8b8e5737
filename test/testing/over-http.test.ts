/** `waypost dev --virtual-time`, for tests in any language: requests advance the clock. */
import { Client } from '@upstash/qstash';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startVirtual, virtualConfig } from '../../src/cli/run/virtual-time.ts';
import { DEVELOPMENT_ACCOUNTS } from '../../src/config/development.ts';
import type { RunningServer } from '../../src/server/server.ts';
import { startWaypost } from '../../src/testing/waypost.ts';
import { SILENT } from '../support/silent-log.ts';
import { giveCommand } from '../support/waypost-command.ts';
import { TestApp } from './app.ts';

const DAY_MS = 86_400_000;
const [{ token }] = DEVELOPMENT_ACCOUNTS;
interface Reply {
  status: number;
  json: { now: number; isIdle: boolean; error?: string };
}

async function pass(url: string, how: 'advance' | 'run-until-idle', body?: unknown, by = token): Promise<Reply> {
  const response = await fetch(`${url}/v2/waypost/time/${how}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${by}` },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, json: (await response.json()) as Reply['json'] };
}

describe('a server on virtual time', () => {
  let server: RunningServer;
  let client: Client;
  let app: TestApp;
  beforeEach(async () => {
    const onFatal = (error: Error): never => {
      throw error;
    };
    const config = virtualConfig({}, ['--port', '0']);
    server = await startVirtual(config, { log: SILENT, credentials: 'development', onFatal });
    client = new Client({ baseUrl: server.url, token });
    app = await TestApp.open();
  });
  afterEach(async () => {
    await server.stop(0);
    await app.close();
  });

  const advance = (body: unknown) => pass(server.url, 'advance', body);

  it('advances by a week, and responds when all due work is finished', async () => {
    const { json: start } = await advance({ duration: 0 });
    await client.publishJSON({ url: app.url, body: {}, delay: '7d' });
    const before = await advance({ duration: '6d23h' });
    expect([before.json, app.calls.length]).toEqual([{ now: start.now + 7 * DAY_MS - 3_600_000, isIdle: false }, 0]);
    const after = await advance({ duration: 3_600_000 });
    expect([after.json, app.calls.length]).toEqual([{ now: start.now + 7 * DAY_MS, isIdle: true }, 1]);
  });

  it('handles concurrent requests to advance one after the other', async () => {
    const { json: start } = await advance({ duration: 0 });
    const ends = await Promise.all([advance({ duration: '1d' }), advance({ duration: '2d' })]);
    expect(ends.map(({ json }) => json.now - start.now)).toEqual([DAY_MS, 3 * DAY_MS]);
  });

  it('runs until idle, or until the limit', async () => {
    const { json: start } = await advance({ duration: 0 });
    await client.publishJSON({ url: app.url, body: {}, delay: '3d' });
    const halted = await pass(server.url, 'run-until-idle', { limit: '2d' });
    expect([halted.json.isIdle, app.calls.length]).toEqual([false, 0]);
    const idle = await pass(server.url, 'run-until-idle');
    expect([idle.json, app.calls.length]).toEqual([{ now: start.now + 3 * DAY_MS, isIdle: true }, 1]);
  });

  it('is idle while a client watches the log, which gets events without an advance', async () => {
    const closing = new AbortController();
    const { body } = await fetch(`${server.url}/v2/waypost/live`, {
      headers: { authorization: `Bearer ${token}` },
      signal: closing.signal,
    });
    const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
    let told = '';
    const until = async (text: string): Promise<void> => {
      while (!told.includes(text)) told += (await reader?.read())?.value ?? '';
    };
    await until('event: open');
    await client.publishJSON({ url: app.url, body: {} });
    await until('"state":"DELIVERED"');
    const { json } = await pass(server.url, 'run-until-idle');
    expect(json.isIdle).toBe(true);
    closing.abort();
  });

  it.each([
    [{}, 'duration must be milliseconds'],
    [{ duration: 'soon' }, 'duration must be milliseconds'],
    [{ duration: -1 }, 'duration must be milliseconds'],
    [{ duration: 9e15 }, 'duration goes beyond all dates'],
    [[], 'an object is needed'],
  ])('refuses %j', async (body, reason) => {
    const { status, json } = await advance(body);
    expect([status, json.error]).toEqual([400, expect.stringContaining(reason)]);
  });
});

describe('without virtual time, or with the test kit', () => {
  it('has no such routes, and does not document them', async () => {
    const waypost = await startWaypost();
    const { status } = await pass(waypost.url, 'advance', { duration: '1d' }, waypost.token);
    const document = await (await fetch(`${waypost.url}/openapi.json`)).text();
    await waypost.stop();
    expect([status, document.includes('/waypost/time/')]).toEqual([404, false]);
  });

  it('is rejected by the production server, and with several workers', async () => {
    const refusals = [
      await giveCommand(['serve', '--virtual-time']),
      await giveCommand(['dev', '--virtual-time', '--workers', '2']),
    ];
    expect(refusals.map(({ code, stderr }) => [code, stderr])).toEqual([
      [2, expect.stringContaining('--virtual-time: there is no such option')],
      [2, expect.stringContaining('only a single worker can stop its clock')],
    ]);
  });
});
