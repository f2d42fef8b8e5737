/** Flow control over the whole interface, on simulated time (contract M 16, 22.30 to 22.36). */
import { Value } from '@sinclair/typebox/value';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { FLOW_KEY } from '../../src/api/lanes/flow-control.ts';
import { openTimedWorld, type TimedWorld, to } from './support/timed-world.ts';
import { type Json, LIMITS, OTHER_TOKEN } from './support/world.ts';

let world: TimedWorld;
beforeEach(async () => {
  world = await openTimedWorld();
});
afterEach(() => world.close());

const SECOND = 1_000;
const OTHER = { authorization: `Bearer ${OTHER_TOKEN}` };

function limited(key: string, value: string): Record<string, string> {
  return { 'upstash-flow-control-key': key, 'upstash-flow-control-value': value };
}

/** One message for each name, all under the same limits. */
async function publishAll(key: string, value: string, urls: string[]): Promise<string[]> {
  const ids: string[] = [];
  for (const url of urls) ids.push(await world.publish(url, limited(key, value)));
  return ids;
}

const names = (...all: string[]): string[] => all.map((name) => to(name));
const act = (key: string, action: string) => world.post(`flowControl/${key}/${action}`);
const keyOf = async (key: string): Promise<Json> => (await world.get(`flowControl/${key}`)).json;
const explain = async (id: string): Promise<Json> => (await world.get(`messages/${id}/explain`)).json;
const pass = (seconds: number): Promise<void> => world.clock.advanceBy(seconds * SECOND);

describe('messages of a key', () => {
  it('obey both limits (the example of contract M 16.5)', async () => {
    const urls = Array.from({ length: 30 }, (_, n) => to(`m${n}`, 100));
    await publishAll('k', 'rate=10, period=1m, parallelism=20', urls);
    const startsOf: number[] = [];
    for (const seconds of [1, 58, 2, 38, 3]) {
      await pass(seconds);
      startsOf.push(world.starts().length);
    }
    // The eleventh to twentieth go out in the second minute; then nothing does until the first ten end.
    expect(startsOf).toEqual([10, 10, 20, 20, 20]);
    await pass(20);
    expect(world.starts().length).toBe(30);
    expect(world.mostRunning()).toBe(20);
  });

  it('count for the rate with each retry, and hold no slot while they wait for one (contract M 16.5)', async () => {
    const retries = { 'upstash-retries': '1', 'upstash-retry-delay': '3000' };
    await world.publish(to('a', 1, 500), { ...limited('k', 'parallelism=1'), ...retries });
    await world.publish(to('b'), limited('k', 'parallelism=1'));
    await pass(10);
    expect(world.starts()).toEqual(['a@0', 'b@1', 'a@4']);
    await world.publish(to('c', 1, 500), { ...limited('r', 'rate=2,period=1m'), ...retries });
    await publishAll('r', 'rate=2,period=1m', names('d'));
    await pass(5);
    expect(await keyOf('r')).toMatchObject({ rateCount: 2, waitListSize: 1 });
    await pass(60);
    expect(world.starts().slice(3)).toEqual(['c@10', 'd@10', 'c@70']);
  });

  it('wait no longer than their own limits for an endpoint that others of their key wait for', async () => {
    for (let n = 0; n < 50; n += 1) await world.publish(to('slow', 100));
    const items = [...Array(99).fill('crowd'), 'last'].map((name) => ({
      destination: to(name),
      headers: limited('crowded', 'parallelism=1'),
    }));
    await world.post('batch', items);
    await pass(1);
    expect(await keyOf('crowded')).toMatchObject({ waitListSize: 99, parallelismCount: 0 });
    await publishAll('small', 'parallelism=1', names('x'));
    await pass(300);
    const started = world.starts();
    expect([started.find((start) => start.startsWith('x')), started.at(-1)]).toEqual(['x@100', 'last@199']);
  });

  it('say why they wait', async () => {
    const [, full = ''] = await publishAll('full', 'parallelism=1', [to('a', 60), to('b')]);
    expect(await explain(full)).toEqual({
      reason: 'key_full',
      explanation: 'The flow-control key full has 1 of 1 attempts in flight; 1 waiting.',
      retried: 0,
      due: expect.any(Number),
      flowControlKey: 'full',
    });
    const [, late = ''] = await publishAll('late', 'rate=1,period=1m', names('c', 'd'));
    const rate = await explain(late);
    expect([rate.reason, rate.explanation]).toEqual([
      'key_rate',
      'The flow-control key late has started 1 of 1 attempts in its period, which ends at 2026-01-01T00:01:00.000Z.',
    ]);
    await act('paused', 'pause');
    const [held = ''] = await publishAll('paused', 'rate=1', names('e'));
    expect(await explain(held)).toMatchObject({
      reason: 'key_paused',
      explanation: 'The flow-control key paused is paused.',
    });
  });

  it('can be given another key when they are retried from the DLQ (contract M 17)', async () => {
    await world.publish(to('a', 1, 500), { ...limited('k', 'rate=5'), 'upstash-retries': '0' });
    await pass(5);
    const [dead] = (await world.get('dlq?flowControlKey=k')).json.messages;
    expect(dead).toMatchObject({ flowControlKey: 'k', rate: 5, period: 1 });
    await act('other', 'pause');
    const retried = await world.post(`dlq/retry/${dead.dlqId}`, undefined, limited('other', 'parallelism=2'));
    expect(retried.status).toBe(201);
    const shown = (await world.get(`messages/${retried.json.messageId}`)).json;
    expect(shown).toMatchObject({ flowControlKey: 'other', parallelism: 2 });
    expect(shown).not.toHaveProperty('rate');
    expect(await keyOf('other')).toMatchObject({ waitListSize: 1, parallelismMax: 2 });
  });
});

describe('a key', () => {
  it('shows all of its eleven fields, times in seconds', async () => {
    await pass(2.5);
    await publishAll(
      'k',
      'parallelism=2, rate=3, period=1m',
      ['a', 'b', 'c', 'd'].map((name) => to(name, 10)),
    );
    const { status, json } = await world.get('flowControl/k');
    expect([status, json]).toEqual([
      200,
      {
        flowControlKey: 'k',
        waitListSize: 2,
        parallelismMax: 2,
        parallelismCount: 2,
        rateMax: 3,
        rateCount: 2,
        ratePeriod: 60,
        ratePeriodStart: Date.UTC(2026, 0, 1) / 1000 + 2,
        isPaused: false,
        isPinnedParallelism: false,
        isPinnedRate: false,
      },
    ]);
    expect(Value.Check(FLOW_KEY.schema, json)).toBe(true);
    await pass(120);
    expect(await keyOf('k')).toMatchObject({ waitListSize: 0, parallelismCount: 0, rateCount: 0 });
  });

  it('shows 0 for limits that it has not, before its first period too (contract M 22.30)', async () => {
    await act('k', 'pause');
    expect(await keyOf('k')).toEqual({
      flowControlKey: 'k',
      waitListSize: 0,
      parallelismMax: 0,
      parallelismCount: 0,
      rateMax: 0,
      rateCount: 0,
      ratePeriod: 0,
      ratePeriodStart: 0,
      isPaused: true,
      isPinnedParallelism: false,
      isPinnedRate: false,
    });
  });

  it('that nobody used is unknown, and stays so when it is resumed, unpinned or reset', async () => {
    for (const action of ['resume', 'unpin?rate=true', 'resetRate', 'reset']) {
      expect(await act('k', action)).toMatchObject({ status: 200, text: '' });
    }
    const { status, json } = await world.get('flowControl/k');
    expect([status, json.error]).toEqual([404, 'flow control key k not found']);
  });

  it.each(['resetRate', 'reset', 'RESETRATE'])('begins a new period by %s', async (action) => {
    await publishAll('k', 'rate=1,period=1h', names('a', 'b', 'c'));
    await pass(10);
    await act('paused', 'pause');
    await act('k', 'pause');
    expect(await act('k', action)).toMatchObject({ status: 200, text: '' });
    expect(await keyOf('k')).toMatchObject({ rateCount: 0, ratePeriodStart: Date.UTC(2026, 0, 1) / 1000 + 10 });
    await act('k', 'resume');
    await pass(10);
    expect(world.starts()).toEqual(['a@0', 'b@10']);
    await pass(3600);
    expect(world.starts()).toEqual(['a@0', 'b@10', 'c@3610']);
  });

  it.each<[string, string, RegExp]>([
    ['pin', 'nothing', /^invalid query parameter parallelism: this, rate or both are needed$/],
    ['pin?period=5', 'a period alone', /^invalid query parameter parallelism: this, rate or both are needed$/],
    ['pin?parallelism=1&period=5', 'a period without rate', /^invalid query parameter period: it needs a rate$/],
    ['pin?parallelism=0', 'no parallelism', /^invalid query parameter parallelism: a number of at least 1 is needed$/],
    ['pin?parallelism=', 'an empty parallelism', /^invalid query parameter parallelism: a whole number is needed$/],
    ['pin?rate=-1', 'a negative rate', /^invalid query parameter rate: a whole number is needed$/],
    ['pin?rate=1.5', 'half a rate', /^invalid query parameter rate: a whole number is needed$/],
    ['pin?rate=1&rate=2', 'two rates', /^invalid query parameter rate: only one value is possible$/],
    ['pin?rate=1&period=0', 'no period', /^invalid query parameter period: a number from 1 to 604800 is needed$/],
    ['pin?rate=1&period=604801', 'a long period', /^invalid query parameter period: a number from 1 to 604800/],
    ['pin?rate=1&period=1m', 'a duration as period', /^invalid query parameter period: a whole number is needed$/],
    ['unpin?rate=yes', 'no boolean', /^invalid query parameter rate: true or false is needed$/],
    ['unpin?parallelism=', 'an empty boolean', /^invalid query parameter parallelism: true or false is needed$/],
  ])('is not changed by %s: %s', async (action, _name, error) => {
    const reply = await act('k', action);
    expect([reply.status, reply.json.error]).toEqual([400, expect.stringMatching(error)]);
    expect((await world.get('flowControl/k')).status).toBe(404);
  });

  it.each([
    ['GET', 'a%20b'],
    ['POST', '/pause'],
    ['POST', 'a%20b/pause'],
    ['POST', 'a%2Fb/resume'],
    ['POST', 'x*/pin?rate=1'],
    ['POST', 'a,b/unpin'],
    ['POST', `${'x'.repeat(256)}/resetRate`],
  ] as const)('has a name: %s %s is refused', async (method, path) => {
    const reply = await world.ask({ method, url: `/v2/flowControl/${path}` });
    expect([reply.status, reply.json.error]).toEqual([400, expect.stringMatching(/^invalid flow control key/)]);
  });

  it('is forgotten a day after its last use, unless somebody has set something for it (contract M 16.9)', async () => {
    await publishAll('used', 'rate=1', names('a'));
    await act('pinned', 'pin?rate=1');
    await act('paused', 'pause');
    await world.publish(to('later'), { ...limited('waiting', 'rate=1'), 'upstash-delay': '10d' });
    await pass(86_400 - 3_600);
    expect((await world.get('flowControl/used')).status).toBe(200);
    await pass(3 * 86_400);
    expect((await world.get('flowControl/used')).status).toBe(404);
    const { flowControls } = (await world.get('flowControl')).json;
    expect(flowControls.map(({ flowControlKey }: Json) => flowControlKey)).toEqual(['paused', 'pinned', 'waiting']);
  });
});

describe('the list of keys', () => {
  it('can be narrowed to keys with a part of their name, in the same letter case (contract M 22.30)', async () => {
    for (const key of ['crm.eu', 'crm.us', 'CRM', 'mail_1', 'mail-1']) await act(key, 'pause');
    const found = async (search: string): Promise<string[]> =>
      (await world.get(`flowControl?search=${search}`)).json.flowControls.map((key: Json) => key.flowControlKey);
    expect(await found('crm')).toEqual(['crm.eu', 'crm.us']);
    expect(await found('m_')).toEqual([]);
    expect(await found('l_')).toEqual(['mail_1']);
    expect(await found('%25')).toEqual([]);
    expect(await found('')).toEqual(['CRM', 'crm.eu', 'crm.us', 'mail-1', 'mail_1']);
  });

  it('comes in pages of up to 1,000 keys', async () => {
    const items = Array.from({ length: 1_050 }, (_, n) => ({
      destination: to('x'),
      headers: limited(`key-${String(n).padStart(4, '0')}`, 'rate=1'),
    }));
    for (let at = 0; at < items.length; at += 100) await world.post('batch', items.slice(at, at + 100));
    const all: string[] = [];
    let cursor: string | undefined;
    const sizes: number[] = [];
    do {
      const { json }: Json = await world.get(`flowControl${cursor === undefined ? '' : `?cursor=${cursor}`}`);
      sizes.push(json.flowControls.length);
      all.push(...json.flowControls.map((key: Json) => key.flowControlKey));
      cursor = json.cursor;
    } while (cursor !== undefined);
    expect(sizes).toEqual([1_000, 50]);
    expect(all).toEqual(items.map(({ headers }) => headers['upstash-flow-control-key']));
    const few = (await world.get('flowControl?search=key-10&count=20')).json;
    expect([few.flowControls.length, typeof few.cursor]).toEqual([20, 'string']);
    const rest = (await world.get(`flowControl?search=key-10&count=9999&cursor=${few.cursor}`)).json;
    expect([rest.flowControls.length, 'cursor' in rest]).toEqual([30, false]);
    expect(rest.flowControls[0].flowControlKey).toBe('key-1020');
  });

  it.each([
    ['count=0', /^invalid query parameter count: a number of at least 1 is needed$/],
    ['count=x', /^invalid query parameter count: a whole number is needed$/],
    ['cursor=', /^invalid query parameter cursor/],
    ['cursor=a%20b', /^invalid query parameter cursor/],
    ['search=a,b', /^invalid query parameter search: only one value is possible$/],
  ])('is refused with %s', async (query, error) => {
    const { status, json } = await world.get(`flowControl?${query}`);
    expect([status, json.error]).toEqual([400, expect.stringMatching(error)]);
  });
});

describe('global parallelism', () => {
  it('holds back what would be too much for the project, and nobody else (contract M 16.8)', async () => {
    await world.close();
    world = await openTimedWorld({ limits: { ...LIMITS, parallelismMax: 2 } });
    for (const name of ['a', 'b', 'c']) await world.publish(to(name, 10));
    const [held = ''] = await publishAll('k', 'parallelism=1', [to('d', 5), to('e', 5)]);
    await world.post(`publish/${to('foreign')}`, undefined, OTHER);
    await pass(1);
    expect((await world.get('globalParallelism')).json).toEqual({ parallelismMax: 2, parallelismCount: 2 });
    expect(await explain(held)).toMatchObject({ reason: 'parallelism' });
    expect(await keyOf('k')).toMatchObject({ waitListSize: 1, parallelismCount: 0 });
    await pass(60);
    expect(world.starts()).toEqual(['a@0', 'b@0', 'foreign@0', 'c@10', 'd@10', 'e@15']);
  });
});
