/** A complete server on the embedded database when the clock of its machine is set back by an hour. */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { DEVELOPMENT_ACCOUNTS } from '../../src/config/development.ts';
import { parseConfig } from '../../src/config/parse.ts';
import type { EventLog, Machine } from '../../src/engine/ports.ts';
import { type RunningServer, startServer } from '../../src/server/server.ts';
import { systemClock } from '../../src/system/system.ts';
import { listen, originOf } from '../support/listen.ts';

const HOUR_MS = 3_600_000;

let setByMs = 0;
const machine: Machine = {
  wallMs: () => systemClock.wallMs() + setByMs,
  get elapsedMs() {
    return systemClock.elapsedMs;
  },
  startTimer: (delayMs, task) => systemClock.startTimer(delayMs, task),
};
const events: [string, unknown][] = [];
const note: EventLog['info'] = (event, fields) => void events.push([event, fields]);
const endpoint = createServer((_request, response) => response.end());
let server: RunningServer;

beforeAll(async () => {
  await listen(endpoint);
  const config = parseConfig({}, ['--port', '0', '--memory'], { dev: true });
  server = await startServer(config, {
    log: { debug: note, info: note, warn: note, error: note },
    credentials: 'development',
    onFatal: (error) => {
      throw error;
    },
    clock: machine,
    isStoreInline: true,
  });
});
afterAll(async () => {
  await server.stop(0);
  endpoint.closeAllConnections();
  endpoint.close();
});

it('a delay ends all the same, the signature is of the time that the clock shows, and the log tells of the jump', async () => {
  const arrival = once(endpoint, 'request') as Promise<[IncomingMessage]>;
  const published = await fetch(`${server.url}/v2/publish/${originOf(endpoint)}/`, {
    method: 'POST',
    headers: { authorization: `Bearer ${DEVELOPMENT_ACCOUNTS[0].token}`, 'upstash-delay': '1s' },
  });
  expect(published.status).toBe(200);
  const publishedAtS = Math.floor(systemClock.wallMs() / 1_000);
  setByMs = -HOUR_MS;
  const [{ headers }] = await arrival; // an hour late, this test would have ended before
  const [, payload = ''] = String(headers['upstash-signature']).split('.');
  const { iat } = JSON.parse(Buffer.from(payload, 'base64url').toString()) as { iat: number };
  expect(iat).toBeLessThan(publishedAtS);
  const jumps = events.filter(([event]) => event === 'clock_set').map(([, fields]) => fields);
  expect(jumps).toEqual([{ byMs: expect.closeTo(-HOUR_MS, -4), times: 1 }]);
});
