/**
 * Publishes of workflow runs, and triggers: the commands that the API passes to the engine, and the responses that it derives
 * from the results.
 */
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import type { Engine } from '../../src/engine/commands.ts';
import type { PublishCommand, PublishOutcome } from '../../src/engine/messages/publish-command.ts';
import { LIMITS, openWorld, type World } from './support/world.ts';

const BEGUN = { id: 'wfr_begun', createdAtMs: 1_700_000_000_123 };

/** Commands of the current test, and the outcome that the engine returns for each. */
let commands: PublishCommand[] = [];
let outcomeOf: (command: PublishCommand, index: number) => PublishOutcome;

const world: World = await (async () => {
  const real = await openWorld();
  await real.close();
  const publish: Engine['publish'] = async (_projectId, given) => {
    commands.push(...given);
    return given.map(outcomeOf);
  };
  const storeOf: Engine['storeOf'] = (projectId) => {
    const store = real.engine.storeOf(projectId);
    return { ...store, urlGroups: { ...store.urlGroups, findUrlGroup: async () => undefined } };
  };
  const engine: Engine = { ...real.engine, checkAdmission: () => {}, publish, storeOf };
  return openWorld({ engine });
})();
afterAll(() => world.close());

beforeEach(() => {
  commands = [];
  outcomeOf = ({ url }, index) => ({ messageId: `msg_${index}`, url, deduplicated: false, run: BEGUN });
});

const WORKFLOW = 'https://ok.example/wf';
const START = { 'upstash-workflow-init': 'true', 'upstash-workflow-runid': 'wfr_x' };
const STEP = { 'upstash-workflow-init': 'false', 'upstash-workflow-runid': 'wfr_x' };
const CALL = { ...STEP, 'upstash-workflow-calltype': 'toCallback', 'upstash-callback': WORKFLOW };

function post(url: string, headers: Record<string, string> = {}, payload: string | Buffer = '') {
  return world.ask({ method: 'POST', url, headers, payload });
}

const publish = (destination: string, headers: Record<string, string> = {}, payload?: string | Buffer) =>
  post(`/v2/publish/${destination}`, headers, payload);
const batch = (items: unknown) => post('/v2/batch', {}, JSON.stringify(items));

/** The response to a step or a call that is published alone, and as one of two in a batch. */
async function refusals(destination: string, headers: Record<string, string>): Promise<[number, string][]> {
  const alone = await publish(destination, headers);
  const inBatch = await batch([{ destination: WORKFLOW }, { destination, headers }]);
  expect(commands).toEqual([]);
  return [
    [alone.status, alone.json.error],
    [inBatch.status, inBatch.json.error],
  ];
}

describe('a publish of a workflow run', () => {
  it('keeps the bytes of a step as they are, also of a large one in a batch', async () => {
    const body = `{ "stepId": 1,\t"out": ${JSON.stringify('水"\\'.repeat(10_000))}, "x": [${'1,'.repeat(5_000)}2] }`;
    await publish(WORKFLOW, STEP, body);
    await batch([{ destination: WORKFLOW, headers: STEP, body }]);
    expect(commands.map((command) => Buffer.from(command.body).toString() === body)).toEqual([true, true]);
    expect(commands).toMatchObject([
      { options: { run: { kind: 'append' } } },
      { options: { run: { kind: 'append' } } },
    ]);
  });

  it.each<[string, string, Record<string, string>, string | RegExp]>([
    ['a bad header', WORKFLOW, { ...STEP, 'upstash-retries': 'x' }, /^invalid Upstash-Retries/],
    ['a bad URL', 'https://', STEP, /^invalid destination url/],
    ['a bad scheme', 'ftp://h/x', CALL, /^invalid destination url/],
    ['a URL group', 'some-group', STEP, /^Upstash-Workflow-Init is not supported for URL groups/],
    ['a call without a callback', WORKFLOW, { ...CALL, 'upstash-callback': '' }, /^invalid Upstash-Callback/],
    [
      'an id that no path can have, for the run that it invokes',
      WORKFLOW,
      { ...START, 'upstash-workflow-invoke': 'true', 'upstash-workflow-runid': 'wfr_x#y' },
      /invalid upstash-workflow-runid: the id/i,
    ],
    [
      'a body that is no invocation',
      WORKFLOW,
      { ...START, 'upstash-workflow-invoke': 'true' },
      /^invalid request body/,
    ],
  ])('that runs is refused with 422 for %s (contract W 4.7)', async (_, destination, headers, error) => {
    for (const [status, text] of await refusals(destination, headers)) {
      expect([status, text]).toEqual([422, expect.stringMatching(error)]);
    }
  });

  it('that runs is refused with 422 for what is wrong with another item of its batch', async () => {
    const step = { destination: WORKFLOW, headers: STEP };
    for (const wrong of [1, {}, { destination: 'https://h/', body: 1 }, { destination: WORKFLOW, headers: [] }]) {
      expect((await batch([step, wrong])).status).toBe(422);
      expect((await batch([{ destination: WORKFLOW }, wrong])).status).toBe(400);
    }
    expect((await batch(Array.from({ length: LIMITS.batchItemsMax + 1 }, () => step))).status).toBe(422);
  });

  it('may be looked for among headers of any shape', async () => {
    const nested = `${'['.repeat(40_000)}${']'.repeat(40_000)}`;
    for (const value of ['{"toString":1}', nested, '{}', 'null', '1']) {
      const item = `{"destination":"${WORKFLOW}","headers":{"upstash-workflow-init":${value}}}`;
      expect((await post('/v2/batch', {}, `[${item}]`)).status).toBe(400);
    }
    // Not as headers are written, but it says what it is.
    for (const value of ['false', '[false]', '[null, "false"]']) {
      const item = `{"destination":"${WORKFLOW}","headers":{"upstash-workflow-init":${value}}}`;
      expect((await post('/v2/batch', {}, `[${item}]`)).status).toBe(422);
    }
  });

  it('that runs is refused with 422 for what is wrong with its query, too', async () => {
    expect((await publish(`${WORKFLOW}?upstash-label=%zz`, STEP)).status).toBe(422);
    expect((await publish(`${WORKFLOW}?upstash-label=%zz`)).status).toBe(400);
  });

  it('that runs is refused with 412 for a body above the limit, and another with 413 (contract W 4.7)', async () => {
    const body = 'x'.repeat(LIMITS.messageBytesMax + 1);
    const statusesOf = async (headers: Record<string, string>) => {
      const replies = [
        await publish(WORKFLOW, headers, body),
        await batch([{ destination: WORKFLOW }, { destination: WORKFLOW, headers, body }]),
      ];
      for (const { json } of replies) {
        expect(json.error).toContain(`quota maxMessageSize exceeded, current limit: ${LIMITS.messageBytesMax}`);
      }
      return replies.map(({ status }) => status);
    };
    for (const headers of [STEP, CALL, { ...START, 'upstash-workflow-invoke': 'true' }]) {
      expect(await statusesOf(headers)).toEqual([412, 412]);
    }
    for (const headers of [{}, START]) expect(await statusesOf(headers)).toEqual([413, 413]);
    expect(commands).toEqual([]);
  });

  it('that runs is refused with 412 for a limit', async () => {
    for (const [status, text] of await refusals(WORKFLOW, { ...CALL, 'upstash-retries': '1000000' })) {
      expect([status, text]).toEqual([412, expect.stringMatching(/^quota maxRetries exceeded/)]);
    }
  });

  it('that begins is refused with 400', async () => {
    for (const [status] of await refusals(WORKFLOW, { ...START, 'upstash-retries': 'x' })) expect(status).toBe(400);
    for (const [status] of await refusals('some-group', START)) expect(status).toBe(400);
    expect((await post(`/v2/enqueue/q/${WORKFLOW}`, START)).status).toBe(400);
    expect((await post(`/v2/schedules/${WORKFLOW}`, { ...START, 'upstash-cron': '@daily' })).status).toBe(400);
  });

  it('may call what may not be called, and learns of it as of all that goes wrong with a call', async () => {
    const blocked = 'http://127.0.0.1:1/';
    expect((await publish(blocked, CALL)).status).toBe(200);
    expect((await batch([{ destination: blocked, headers: CALL }])).status).toBe(200);
    expect((await publish(WORKFLOW, { ...CALL, 'upstash-callback': blocked })).status).toBe(200);
    commands = [];
    for (const [status, text] of await refusals(blocked, START)) {
      expect([status, text]).toEqual([400, expect.stringMatching(/loopback/)]);
    }
    for (const [status] of await refusals(WORKFLOW, { ...START, 'upstash-failure-callback': blocked })) {
      expect(status).toBe(400);
    }
  });

  it('that another invokes has what it is sent for its payload, and says who waits for it', async () => {
    const headers = { ...START, 'upstash-workflow-invoke': 'true', 'upstash-feature-set': 'LazyFetch' };
    const body = JSON.stringify({
      body: '{"a":1}',
      headers: { 'Upstash-Workflow-Init': ['false'], 'Upstash-Forward-X': ['v'] },
      workflowRunId: 'wfr_parent',
      workflowRunCreatedAt: 7,
      workflowUrl: 'https://ok.example/parent',
      step: { stepId: 3, stepName: 'i', stepType: 'Invoke', concurrent: 1 },
    });
    expect((await publish(WORKFLOW, headers, body)).status).toBe(200);
    expect((await batch([{ destination: WORKFLOW, headers, body }])).status).toBe(200);
    for (const command of commands) {
      expect(command).toMatchObject({
        body: Buffer.from('{"a":1}'),
        invocation: {
          runId: 'wfr_parent',
          createdAtMs: 7,
          features: ['LazyFetch'],
          result: { url: 'https://ok.example/parent', header: { X: ['v'] } },
        },
      });
      expect(String(command.invocation?.step)).toBe('{"stepId":3,"stepName":"i","stepType":"Invoke","concurrent":1}');
    }
    expect(commands).toHaveLength(2);
  });

  it('cannot take the server down with what an invocation nests or lists', async () => {
    const headers = { ...START, 'upstash-workflow-invoke': 'true' };
    for (const body of [`${'['.repeat(50_000)}`, `{"headers":{${'"a":"b",'.repeat(9_000)}"c":"d"}}`]) {
      expect((await publish(WORKFLOW, headers, body)).status).toBe(422);
    }
  });
});

describe('a trigger', () => {
  const trigger = (destination: string, headers: Record<string, string> = {}, payload?: string) =>
    post(`/v2/trigger/${destination}`, headers, payload);

  it.each(['https%3A%2F%2Fok.example%2Fwf', 'https:/ok.example/wf'])(
    'reads the destination %s',
    async (destination) => {
      await trigger(destination);
      expect(commands).toMatchObject([{ url: WORKFLOW }]);
    },
  );

  it.each<[string, string, Record<string, string>, number, RegExp]>([
    ['a URL group', 'some-group', {}, 400, /not a URL group/],
    ['nothing', '', {}, 400, /destination/],
    ['another scheme', 'ftp://h/', {}, 400, /scheme/],
    ['a private address', 'http://127.0.0.1/', {}, 400, /loopback/],
    [
      'a private address to tell of failures',
      WORKFLOW,
      { 'upstash-failure-callback': 'http://127.0.0.1/' },
      400,
      /loop/,
    ],
    ['a bad header', WORKFLOW, { 'upstash-workflow-init': 'false', 'upstash-retries': 'x' }, 400, /Retries/],
    ['times', WORKFLOW, { 'upstash-cron': '@daily' }, 400, /Cron is not supported for triggers/],
    ['too many retries', WORKFLOW, { 'upstash-retries': '1000' }, 412, /maxRetries/],
  ])('for %s is refused', async (_, destination, headers, status, error) => {
    const reply = await trigger(destination, headers);
    expect([reply.status, reply.json.error]).toEqual([status, expect.stringMatching(error)]);
    expect(commands).toEqual([]);
  });

  it.each<[string, unknown, RegExp]>([
    ['no array', {}, /an array of messages is needed/],
    ['no destination', [{}], /a non-empty destination must be provided \(item 0\)/],
    ['a URL group', [{ destination: WORKFLOW }, { destination: 'group' }], /not a URL group \(item 1\)/],
    ['a private address', [{ destination: 'http://127.0.0.1/' }], /loopback.*\(item 0\)/],
    ['a queue', [{ destination: WORKFLOW, queue: 'q' }], /not started in a queue \(item 0\)/],
    ['a bad header', [{ destination: WORKFLOW, headers: { ...STEP, 'upstash-delay': 'x' } }], /Delay.*\(item 0\)/],
  ])('for several, one of which is %s, is refused as a whole', async (_, items, error) => {
    const reply = await post('/v2/batch/trigger', {}, JSON.stringify(items));
    expect([reply.status, reply.json.error]).toEqual([400, expect.stringMatching(error)]);
    expect(commands).toEqual([]);
  });
});
