/** Measures the start of the test kit, and the duration of a virtual year: an empty one, and one with messages throughout. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client } from 'undici';
import { startWaypost } from '../src/testing/waypost.ts';
import { storeInBatches } from './batches.ts';
import type { Figure } from './figure.ts';

export const DEFAULT_TEST_KIT = { messages: 10_000 };

const YEAR_S = 365 * 86_400;
const BODY = '{"n":1}';

/** The app runs in the same process as the test kit, as in a test. */
export async function measureTestKit({ messages }: { messages: number }): Promise<Figure[]> {
  let calls = 0;
  const app = createServer((request, response) => {
    calls += 1;
    request.resume();
    response.end();
  }).listen(0, '127.0.0.1');
  await once(app, 'listening');
  const url = `http://127.0.0.1:${(app.address() as AddressInfo).port}`;
  const { ms: startMs, result: waypost } = await timed(() => startWaypost());
  const { ms: emptyMs } = await timed(() => waypost.advance('365d'));
  const { ms: bareMs, cpuMs: bareCpuMs } = await timed(() => requestSequentially(url, messages));
  calls = 0;
  const { ms: fullMs, cpuMs } = await timed(async () => {
    await storeInBatches(waypost, messages, (index) => ({
      destination: url,
      headers: {
        'Upstash-Delay': `${Math.ceil(((index + 1) * YEAR_S) / messages)}s`,
        'Content-Type': 'application/json',
      },
      body: BODY,
    }));
    await waypost.runUntilIdle();
  });
  await waypost.stop();
  app.close();
  const bare = (value: number) => ({ name: 'the same number of sequential bare requests', value });
  return [
    { name: 'start of the test kit', value: startMs, unit: 'ms' },
    { name: 'empty year', value: emptyMs, unit: 'ms' },
    { name: `${messages} messages over a year`, value: fullMs / 1_000, unit: 's', reference: bare(bareMs / 1_000) },
    {
      name: 'CPU for these messages, including the app and the client',
      value: cpuMs / 1_000,
      unit: 's',
      reference: bare(bareCpuMs / 1_000),
    },
    { name: 'messages that never arrived', value: messages - calls, unit: 'messages' },
  ];
}

/** Measures the time and the CPU time of all threads of this process. */
async function timed<T>(work: () => Promise<T>): Promise<{ ms: number; cpuMs: number; result: T }> {
  const [startedAt, cpuBefore] = [performance.now(), process.cpuUsage()];
  const result = await work();
  const { user, system } = process.cpuUsage(cpuBefore);
  return { ms: performance.now() - startedAt, cpuMs: (user + system) / 1_000, result };
}

async function requestSequentially(url: string, count: number): Promise<void> {
  const client = new Client(url);
  const headers = { 'content-type': 'application/json' };
  for (let sent = 0; sent < count; sent += 1) {
    const { body } = await client.request({ path: '/', method: 'POST', headers, body: BODY });
    await body.dump();
  }
  await client.close();
}
