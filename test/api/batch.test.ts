import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Clock } from '../../src/engine/ports.ts';
import { systemClock } from '../../src/system/system.ts';
import { type Json, LIMITS, openWorld, type Reply, type World } from './support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.close());

const URL = 'https://slow.example/x';

/** More than is parsed in the thread that serves; the last body is of two-byte letters. */
const LARGE = ['a', 'b', 'c', '\u20ac'].map((letter) => ({
  destination: `${URL}?${letter}`,
  headers: { 'Upstash-Delay': '1h', 'Upstash-Forward-Letter': letter.charCodeAt(0).toString() },
  body: letter.repeat(letter === '\u20ac' ? 30_000 : 90_000),
}));

function batch(items: unknown): Promise<Reply> {
  const payload = typeof items === 'string' ? items : JSON.stringify(items);
  return world.ask({ method: 'POST', url: '/v2/batch', payload });
}

describe('a batch', () => {
  it('returns one element for each item, in order, with an error for an unknown group', async () => {
    const items = [
      { destination: `${URL}?1`, headers: { 'Upstash-Delay': '1h' }, body: 'one' },
      { destination: 'nope' },
      { destination: `${URL}?2`, headers: { 'upstash-forward-a': ['1', '2'], 'upstash-delay': '1h' }, unknown: 1 },
      { destination: URL, headers: null, body: null, queue: '' },
    ];
    const { status, json } = await batch(items);
    expect(status).toBe(200);
    expect(json.map((element: Json) => element.url ?? element.error)).toEqual([
      `${URL}?1`,
      'topic nope not found',
      `${URL}?2`,
      URL,
    ]);
    const first = await world.ask({ method: 'GET', url: `/v2/messages/${json[0].messageId}` });
    const third = await world.ask({ method: 'GET', url: `/v2/messages/${json[2].messageId}` });
    expect([first.json.body, third.json.header]).toEqual(['one', { A: ['1', '2'] }]);
  });

  it('may be large, and is as it was sent', async () => {
    const { status, json } = await batch(LARGE);
    expect(status).toBe(200);
    const stored = await Promise.all(
      json.map(({ messageId }: Json) => world.ask({ method: 'GET', url: `/v2/messages/${messageId}` })),
    );
    expect(stored.map(({ json: { url, body, header } }) => [url, body, header.Letter[0]])).toEqual(
      LARGE.map(({ destination, body, headers }) => [destination, body, headers['Upstash-Forward-Letter']]),
    );
  });

  it('yields to other requests while its items are read and checked, and while the response is made', async () => {
    const items = Array.from({ length: 100 }, () => ({ destination: URL, headers: { 'Upstash-Delay': '1h' } }));
    let turns = 0;
    let readings = 0;
    const checkedAtTurn = new Map<number, number>();
    let turnsOfResponse = 0;
    const slow: Clock = {
      nowMs: () => systemClock.nowMs(),
      wallMs: () => systemClock.wallMs(),
      leadMs: 0,
      onJump: () => {},
      get elapsedMs() {
        return readings++; // a millisecond for each item
      },
      startTimer: (delayMs, task) => systemClock.startTimer(delayMs, task),
    };
    const busy = await openWorld(
      {
        endOfTurn: async () => {
          turns += 1;
          if (checkedAtTurn.size > 0 && (await busy.countStored()) > 0) turnsOfResponse += 1;
        },
        checkDestination: () => () => {
          checkedAtTurn.set(turns, (checkedAtTurn.get(turns) ?? 0) + 1);
          return undefined;
        },
      },
      { clock: slow },
    );
    const reply = await busy.ask({ method: 'POST', url: '/v2/batch', payload: JSON.stringify(items) });
    expect([reply.status, reply.json.length]).toEqual([200, items.length]);
    expect(Math.max(...checkedAtTurn.values())).toBeLessThanOrEqual(5);
    expect(turnsOfResponse).toBeGreaterThanOrEqual(15);
    await busy.close();
  });

  it('may be empty', async () => {
    const { status, json } = await batch([]);
    expect([status, json]).toEqual([200, []]);
  });

  it('does not apply the headers of the request itself to its items', async () => {
    const payload = JSON.stringify([{ destination: URL }]);
    const headers = { 'upstash-retries': 'many', 'upstash-cron': '* * * * *', 'content-type': 'text/plain' };
    const reply = await world.ask({ method: 'POST', url: '/v2/batch', payload, headers });
    expect(reply.status).toBe(200);
  });
});

describe('a batch creates nothing when one item is wrong:', () => {
  const good = { destination: URL };
  it.each<[string, unknown, number, RegExp]>([
    ['no JSON', '[{', 400, /^invalid request body: not valid JSON/],
    ['no array', { destination: URL }, 400, /^invalid request body: an array/],
    ['nothing', '', 400, /^invalid request body: an array/],
    ['no object', [good, 1], 400, /an object is needed \(item 1\)$/],
    ['no destination', [good, {}], 400, /^a non-empty destination must be provided \(item 1\)$/],
    ['a number as body', [{ ...good, body: 1 }], 400, /body must be a string \(item 0\)$/],
    ['wrong headers', [{ ...good, headers: { a: 1 } }], 400, /headers: a must be a string/],
    ['a wrong header', [good, { ...good, headers: { 'upstash-retries': 'x' } }], 400, /Upstash-Retries.*\(item 1\)$/],
    ['a long delay', [good, { ...good, headers: { 'upstash-delay': '999d' } }], 412, /^quota maxDelay exceeded/],
    ['a wrong queue name', [good, { ...good, queue: 'q/1' }], 400, /^invalid queue name q\/1: only .* \(item 1\)$/],
    ['a number as queue', [{ ...good, queue: 1 }], 400, /queue must be a string \(item 0\)$/],
    [
      'a delay in a queue',
      [good, { ...good, queue: 'q', headers: { 'upstash-delay': '1s' } }],
      400,
      /^Upstash-Delay is not supported for queues \(item 1\)$/,
    ],
    [
      'a cron expression in a queue',
      [good, { ...good, queue: 'q', headers: { 'upstash-cron': '@daily' } }],
      400,
      /^Upstash-Cron is not supported for queues \(item 1\)$/,
    ],
    [
      'a callback to a loopback address',
      [good, { ...good, headers: { 'upstash-callback': 'http://127.0.0.1/' } }],
      400,
      /^invalid Upstash-Callback: endpoint resolves to a loopback address: 127.0.0.1 \(item 1\)$/,
    ],
    [
      'a loopback address',
      [good, { destination: 'http://127.0.0.1/' }],
      400,
      /loopback address: 127.0.0.1 \(item 1\)$/,
    ],
    [
      'a large body',
      [good, { ...good, body: 'x'.repeat(LIMITS.messageBytesMax + 1) }],
      413,
      /^quota maxMessageSize exceeded/,
    ],
    [
      'more lines of headers than a publish may have',
      [good, { ...good, headers: { 'upstash-forward-a': Array.from({ length: 1_001 }, () => 'v') } }],
      431,
      /^request headers too large: at most 65536 bytes in 1000 lines \(item 1\)$/,
    ],
    [
      'larger headers than a publish may have',
      [good, { ...good, headers: { a: 'x'.repeat(LIMITS.headerBytesMax) } }],
      431,
      /^request headers too large: .* \(item 1\)$/,
    ],
    [
      'too many lines of headers in all items together',
      Array.from({ length: 11 }, () => ({ ...good, headers: { a: Array.from({ length: 950 }, () => 'v') } })),
      431,
      /^request headers too large: at most 409600 bytes in 10000 lines for all items together$/,
    ],
    [
      'too many values',
      [{ ...good, unknown: Array.from({ length: 25_000 }, () => 1) }],
      400,
      /at most 25000 JSON values/,
    ],
    [
      'a wrong item in a large one',
      [...LARGE, { ...good, headers: { a: 1 } }],
      400,
      /headers: a must be a string or an array of strings \(item 4\)$/,
    ],
    ['no JSON in a large one', JSON.stringify(LARGE).slice(1), 400, /not valid JSON/],
    ['too many', Array.from({ length: 101 }, () => good), 400, /at most 100 items \(batch_items_max\), got 101$/],
    ['too much', 'x'.repeat(LIMITS.batchBytesMax + 1), 413, /batch_bytes_max/],
  ])('%s', async (_name, items, status, error) => {
    const before = await world.countStored();
    const reply = await batch(items);
    expect([reply.status, reply.json.error]).toEqual([status, expect.stringMatching(error)]);
    expect(await world.countStored()).toBe(before);
  });
});
