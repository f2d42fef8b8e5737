/** No input causes a 5xx or a redirect, and a refused request stores nothing (P11). */

import { afterAll, beforeAll, expect, it } from 'vitest';
import { fc } from '../support/fast-check.ts';
import { exchange } from './support/raw-http.ts';
import { openWorld, READ_ONLY_TOKEN, TOKEN, type World } from './support/world.ts';

let world: World;
let port: number;
beforeAll(async () => {
  world = await openWorld();
  ({ port } = await world.listen());
});
afterAll(() => world.close());

const PATHS = [
  '/v2/publish/', '/v2/batch', '/v2/messages', '/v2/messages/', '/v2/dlq', '/v2/dlq/', '/v2/dlq/retry', '/v2/dlq/retry/',
  '/v2/logs', '/v2/events', '/v2/keys', '/v2/topics', '/v2/topics/', '/v2/enqueue/q/', '/v2/enqueue/', '/v2/schedules', '/v2/schedules/',
  '/v2/queues', '/v2/queues/', '/v2/flowControl', '/v2/flowControl/', '/v2/flowcontrol//pin', '/v2/globalParallelism', '/v2/workflows/runs', '/v2/workflows/runs/', '/v2/workflows/dlq', '/v2/workflows/dlq/', '/v2/workflows/dlq/resume/', '/healthz', '/', '//', 'http://h', '*',
]; // biome-ignore format: a list of starting points
const WORDS = [
  'https://slow.example/x', 'http:/h', 'https://[::1', 'https://a b', 'http://h:0/', '%2F', '%', '%ff', '..', '//', '?', '&', '=', '#', ';', '\x80\xff',
  'msg_1', '1-1', '0', '-1', '9'.repeat(20), 'true', 'upstash-retries', 'upstash-delay', 'qstash_token', 'messageIds', 'dlqIds',
  'count', 'cursor', 'fromDate', 'state', 'label', 'url', '__proto__', 'constructor', 'toString', '1h', 'a,b', 'body', 'header[', 'parallelism=1', 'rate=2,period=1s', 'k',
  '* * * * *', '@daily', '0 0 30 2 *', 'CRON_TZ=Asia/Tokyo', 'queueName', 'parallelism', 'paused', 'pause', 'resume', 'pin', 'unpin', 'resetRate',
]; // biome-ignore format: a list of starting points
const HEADERS = [
  'Upstash-Method', 'Upstash-Retries', 'Upstash-Delay', 'Upstash-Not-Before', 'Upstash-Timeout', 'Upstash-Retry-Delay',
  'Upstash-Deduplication-Id', 'Upstash-Content-Based-Deduplication', 'Upstash-Label', 'Upstash-Redact-Fields', 'Upstash-Callback',
  'Upstash-Callback-Callback-Callback-Retries', 'Upstash-Forward-X', 'Upstash-Forward-', 'Upstash-Forward-Te', 'Upstash-Header-Forward',
  'Upstash-Flow-Control-Key', 'Upstash-Flow-Control-Value', 'Upstash-Cron', 'Upstash-Schedule-Id', 'Waypost-Schedule-Catch-Up', 'Waypost-Retries', 'Content-Type', 'X-Forwarded-For', 'Cookie', '__proto__', 'Accept-Version', 'Upgrade',
]; // biome-ignore format: a list of starting points

// biome-ignore format: a list of starting points
const TARGETS = [
  ['POST', '/v2/publish/https://slow.example/'], ['POST', '/v2/batch'], ['GET', '/v2/messages/msg_1'], ['DELETE', '/v2/messages/msg_1'],
  ['DELETE', '/v2/messages'], ['GET', '/v2/dlq'], ['GET', '/v2/dlq/1-1'], ['DELETE', '/v2/dlq'], ['DELETE', '/v2/dlq/1-1'],
  ['POST', '/v2/dlq/retry'], ['POST', '/v2/dlq/retry/1-1'], ['GET', '/v2/logs'], ['GET', '/v2/events'],
  ['POST', '/v2/publish/g'], ['GET', '/v2/topics/g'], ['PATCH', '/v2/topics/g'], ['POST', '/v2/topics/g/endpoints'], ['DELETE', '/v2/topics/g/endpoints'],
  ['POST', '/v2/schedules/https://slow.example/'], ['POST', '/v2/schedules/g'], ['GET', '/v2/schedules'], ['GET', '/v2/schedules/s'],
  ['DELETE', '/v2/schedules/s'], ['PATCH', '/v2/schedules/s/pause'], ['POST', '/v2/schedules/s/resume'],
  ['POST', '/v2/enqueue/q/https://slow.example/'], ['POST', '/v2/queues'], ['GET', '/v2/queues'], ['GET', '/v2/queues/q'], ['DELETE', '/v2/queues/q'],
  ['POST', '/v2/queues/q/pause'], ['POST', '/v2/queues/q/resume'], ['GET', '/v2/flowControl'], ['GET', '/v2/flowControl/k'],
  ['POST', '/v2/flowControl/k/pause'], ['POST', '/v2/flowControl/k/resume'], ['POST', '/v2/flowControl/k/pin'], ['POST', '/v2/flowControl/k/unpin'],
  ['GET', '/v2/workflows/runs/wfr_1'], ['DELETE', '/v2/workflows/runs/wfr_1'], ['DELETE', '/v2/workflows/runs'], ['GET', '/v2/workflows/dlq'], ['GET', '/v2/workflows/dlq/1-1'],
  ['DELETE', '/v2/workflows/dlq'], ['DELETE', '/v2/workflows/dlq/1-1'], ['POST', '/v2/workflows/dlq/resume'], ['POST', '/v2/workflows/dlq/restart/1-1'],
  ['POST', '/v2/workflows/dlq/callback/1-1'], ['DELETE', '/v2/workflows/dlq/callback/1-1'],
  ['POST', '/v2/flowControl/k/resetRate'], ['POST', '/v2/flowControl/k/reset'], ['GET', '/v2/globalParallelism'],
] as const;
// biome-ignore format: a list of starting points
const NAMES = [
  'upstash-retries', 'upstash-delay', 'upstash-label', 'Upstash-Forward-X', 'label', 'url', 'count', 'cursor', 'order', 'state',
  'fromDate', 'messageId', 'messageIds', 'dlqIds', 'responseStatus', 'callerIp', 'host', 'other', 'queueName', 'flowControlKey',
  'workflowRunIds', 'workflowUrl', 'workflowUrlExactMatch', 'workflowRunId', 'workflowCreatedAt', 'failureFunctionState', 'cancel', 'source',
  'search', 'parallelism', 'rate', 'period', 'upstash-flow-control-key', 'upstash-flow-control-value',
];

const word = fc.oneof(
  fc.constantFrom(...WORDS),
  fc.string({ unit: fc.constantFrom(...'aZ09%/?&=+.:-_~\xe4'), maxLength: 8 }),
);
const query = fc
  .array(fc.tuple(fc.constantFrom(...NAMES), word), { maxLength: 3 })
  .map((pairs) => pairs.map(([name, value], i) => `${i === 0 ? '?' : '&'}${name}=${value}`).join(''));
/** What ends a request target on the wire cannot be part of it. */
const wild = fc
  .tuple(fc.constantFrom(...PATHS), fc.array(word, { maxLength: 6 }))
  .map(([path, words]) => `${path}${words.join('')}`.replace(/[ \r\n]/g, ''));
/** Well-formed up to the values, so that requests get as far as the handlers. */
const tame = fc
  .tuple(fc.constantFrom(...TARGETS), query)
  .map(([[method, path], tail]) => ({ method, target: `${path}${tail}`.replace(/[^!-~]/g, '') }));
const line = fc.oneof(
  { weight: 3, arbitrary: tame },
  {
    weight: 1,
    arbitrary: fc.record({ method: fc.constantFrom('GET', 'POST', 'DELETE', 'PUT', 'OPTIONS'), target: wild }),
  },
);
const header = fc.tuple(
  fc.constantFrom(...HEADERS),
  fc.array(word, { maxLength: 4 }).map((words) => words.join(' ')),
);
const json = fc.jsonValue({ maxDepth: 4 });
const batchItem = fc.record(
  { destination: word, headers: fc.dictionary(fc.constantFrom(...HEADERS), word), body: word, queue: word },
  { requiredKeys: [] },
);
const queueSettings = fc.record(
  {
    queueName: word,
    parallelism: fc.oneof(word, fc.integer(), fc.constant(null)),
    paused: fc.oneof(word, fc.boolean()),
  },
  { requiredKeys: [] },
);
const filters = fc.dictionary(word, fc.oneof(word, fc.array(word, { maxLength: 3 }), fc.integer(), json), {
  maxKeys: 3,
});
const body = fc.oneof(
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  fc
    .oneof(json, fc.array(batchItem, { maxLength: 3 }), filters, queueSettings)
    .map((value) => Buffer.from(JSON.stringify(value))),
);
const token = fc.constantFrom(...Array(8).fill(TOKEN), READ_ONLY_TOKEN, 'nope');

it('responds to every request with JSON and a status below 500, and saves nothing of refused requests', {
  timeout: 60_000,
}, async () => {
  const request = fc.record({
    line,
    headers: fc.array(header, { maxLength: 4 }),
    token,
    body,
  });
  let accepted = 0;
  await fc.assert(
    fc.asyncProperty(request, async (given) => {
      const before = await world.countStored();
      const lines = given.headers.map(([name, value]) => `${name}: ${value}\r\n`).join('');
      const head = `${given.line.method} ${given.line.target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nAuthorization: Bearer ${given.token}\r\n`;
      const framing = `Content-Length: ${given.body.length}\r\n\r\n`;
      const response = await exchange(port, Buffer.concat([Buffer.from(head + lines + framing, 'latin1'), given.body]));
      expect(response.status).toBeGreaterThanOrEqual(200);
      expect(response.status).toBeLessThan(500);
      expect(Math.floor(response.status / 100)).not.toBe(3);
      if (response.text !== '') JSON.parse(response.text);
      if (response.status < 400) accepted += 1;
      else {
        expect(JSON.parse(response.text).error).toMatch(/./);
        // Only deliveries that were accepted before may go on meanwhile, and theirs never end.
        expect(await world.countStored()).toBe(before);
      }
    }),
    { numRuns: 500 },
  );
  // Were nearly everything refused at the door, the rest of the house would not have been visited.
  expect(accepted).toBeGreaterThan(50);
  expect(world.logLines.filter(({ event }) => event === 'request_failed')).toEqual([]);
});
