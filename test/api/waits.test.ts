/** Waits, notifications, time-outs and webhooks over HTTP (contract W 14.6, 14.7, 14.9), with time held still. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openTimedWorld, type TimedWorld, to } from './support/timed-world.ts';
import { LIMITS, type Reply } from './support/world.ts';

const HOUR_MS = 3_600_000;
const URL_OF_RUN = to('wf');

let world: TimedWorld;
beforeEach(async () => {
  world = await openTimedWorld();
});
afterEach(() => world.close());

function headersOf(runId: string, isInit: boolean): Record<string, string> {
  return {
    'upstash-workflow-init': String(isInit),
    'upstash-workflow-runid': runId,
    'upstash-workflow-url': URL_OF_RUN,
    'upstash-feature-set': 'WF_TriggerOnConfig',
    'upstash-workflow-calltype': 'step',
    'upstash-forward-upstash-workflow-sdk-version': '1',
    'content-type': 'application/json',
  };
}

/** Begins a run, whose first delivery is answered. */
async function begin(runId: string, headers: Record<string, string> = {}): Promise<void> {
  const given = { ...headersOf(runId, true), 'upstash-forward-x-user': 'u', ...headers };
  const reply = await world.post(`publish/${URL_OF_RUN}`, '{}', given);
  expect([200, 202], reply.text).toContain(reply.status);
  await world.clock.advanceBy(2_000);
}

const STEP = { stepId: 1, stepType: 'Wait', stepName: 'w', concurrent: 1 };

function waitFor(event: string, runId: string, changes: object = {}, headers: Record<string, string> = {}) {
  const body = { url: URL_OF_RUN, timeout: '1h', timeoutUrl: to('late'), step: STEP, ...changes };
  return world.post(`wait/${event}`, body, { ...headersOf(runId, false), ...headers });
}

async function registered(event: string, runId: string, changes: object = {}): Promise<string> {
  const reply = await waitFor(event, runId, changes);
  expect(reply.status, reply.text).toBe(200);
  return reply.json.messageId as string;
}

/** The steps that ended waits so far, as they were delivered last, decoded. */
function lastSteps(): Record<string, unknown>[] {
  const body = world.deliveries().at(-1)?.body;
  const journal = JSON.parse(Buffer.from(body ?? '[]').toString()) as { body: string; callType: string }[];
  return journal.slice(1).map((entry) => JSON.parse(Buffer.from(entry.body, 'base64').toString()));
}

async function later(ms = 2_000): Promise<void> {
  await world.clock.advanceBy(ms);
}

describe('a wait and a notification', () => {
  it('keep a run still until the event comes, and deliver it then (26.81, 26.82)', async () => {
    await begin('wfr_1');
    await registered('e-1', 'wfr_1', { step: { ...STEP, targetStep: 1 } });
    await later();
    expect(world.starts()).toEqual(['wf@0']);
    const [waiter] = (await world.get('waiters/e-1')).json;
    expect(waiter).toMatchObject({ url: URL_OF_RUN, timeoutUrl: to('late') });
    expect(waiter.deadline * 1_000).toBe(world.clock.nowMs() - 2_000 + HOUR_MS);
    expect(waiter.headers['Upstash-Workflow-Runid']).toEqual(['wfr_1']);
    expect(waiter.headers['Upstash-Workflow-Url']).toEqual([URL_OF_RUN]);

    const reply = await world.post('notify/e-1', '{"a":1}');
    expect(reply.status).toBe(201);
    expect(reply.json).toEqual([
      {
        waiter,
        messageId: expect.stringMatching(/^msg_/),
        workflowRunId: 'wfr_1',
        workflowCreatedAt: expect.any(Number),
      },
    ]);
    await later();
    expect(world.starts()).toEqual(['wf@0', 'wf@4']);
    const out = Buffer.from('{"a":1}').toString('base64');
    expect(lastSteps()).toEqual([{ ...STEP, targetStep: 1, waitEventId: 'e-1', waitTimeout: false, out }]);
    expect((await world.get('waiters/e-1')).json).toEqual([]);
  });

  it.each([
    ['a text', 'plain', { out: Buffer.from('plain').toString('base64') }],
    ['nothing', '', {}],
  ])('carry %s unchanged (26.83)', async (_name, event, out) => {
    await begin('wfr_1');
    await registered('e', 'wfr_1');
    await world.post('notify/e', event);
    await later();
    expect(lastSteps()).toEqual([{ ...STEP, waitEventId: 'e', waitTimeout: false, ...out }]);
  });

  it('miss each other when nobody waits yet (26.84)', async () => {
    await begin('wfr_1');
    const reply = await world.post('notify/e', 'x');
    expect([reply.status, reply.json]).toEqual([201, []]);
    await registered('e', 'wfr_1');
    await later();
    expect(world.starts()).toEqual(['wf@0']);
  });

  it('find each other later when the run is named, in order (26.85)', async () => {
    await begin('wfr_1');
    const reply = await world.post('notify/wfr_1/e', 'first');
    expect([reply.status, reply.json]).toEqual([
      201,
      { workflowRunId: 'wfr_1', workflowCreatedAt: expect.any(Number) },
    ]);
    await world.post('notify/wfr_1/e', 'second');
    await registered('e', 'wfr_1');
    await registered('e', 'wfr_1', { step: { ...STEP, stepId: 2 } });
    await later();
    expect(lastSteps().map(({ out }) => Buffer.from(String(out), 'base64').toString())).toEqual(['first', 'second']);
  });

  it('of a named run leave other runs waiting', async () => {
    await begin('wfr_1');
    await begin('wfr_2');
    await registered('e', 'wfr_1');
    await registered('e', 'wfr_2');
    const reply = await world.post('notify/wfr_2/e', 'x');
    expect(reply.json).toMatchObject({ workflowRunId: 'wfr_2', waiter: { url: URL_OF_RUN } });
    const waiters: { headers: Record<string, string[]> }[] = (await world.get('waiters/e')).json;
    expect(waiters.map(({ headers }) => headers['Upstash-Workflow-Runid'])).toEqual([['wfr_1']]);
  });

  it('answer 404 for a run that is not active', async () => {
    expect((await world.post('notify/wfr_1/e', 'x')).status).toBe(404);
  });

  it('of an event wake all that wait for it, in one answer', async () => {
    for (const runId of ['wfr_1', 'wfr_2', 'wfr_3']) {
      await begin(runId);
      await registered('e', runId);
    }
    const reply = await world.post('notify/e', 'x');
    const told: { workflowRunId: string }[] = reply.json;
    expect(told.map(({ workflowRunId }) => workflowRunId)).toEqual(['wfr_1', 'wfr_2', 'wfr_3']);
  });
});

describe('a repeated wait', () => {
  it('is answered with the first one, also after it has ended (4.6)', async () => {
    await begin('wfr_1');
    const messageId = await registered('e', 'wfr_1');
    const again = async (): Promise<unknown> => (await waitFor('e', 'wfr_1')).json;
    expect(await again()).toEqual({ messageId, deduplicated: true });
    expect((await world.get('waiters/e')).json).toHaveLength(1);
    await world.post('notify/e', 'x');
    expect(await again()).toEqual({ messageId, deduplicated: true });
    expect((await world.get('waiters/e')).json).toEqual([]);
  });
});

describe('a time-out', () => {
  it('ends the wait without an event, at the time-out URL (26.86)', async () => {
    await begin('wfr_1');
    await registered('e', 'wfr_1', { timeoutHeaders: { 'Upstash-Forward-X-Late': ['l'] } });
    await later(HOUR_MS);
    expect(world.starts().map((start) => start.split('@')[0])).toEqual(['wf', 'late']);
    expect(lastSteps()).toEqual([{ ...STEP, waitEventId: 'e', waitTimeout: true }]);
    expect(world.deliveries().at(-1)?.header).toMatchObject({ 'X-Late': ['l'], 'X-User': ['u'] });
    expect((await world.get('waiters/e')).json).toEqual([]);
    expect((await world.post('notify/e', 'x')).json).toEqual([]);
  });
});

describe('the end of a run', () => {
  it('takes its waiters with it (26.88), and further waits are told so', async () => {
    await begin('wfr_1');
    await registered('e', 'wfr_1');
    await world.engine.cancelRun(1, 'wfr_1');
    expect((await world.get('waiters/e')).json).toEqual([]);
    expect((await world.post('notify/e', 'x')).json).toEqual([]);
    const reply = await waitFor('e', 'wfr_1', { step: { ...STEP, stepId: 2 } });
    expect([reply.status, reply.json.error]).toEqual([
      400,
      'failed to publish to url: can not append to a a cancelled workflow',
    ]);
    await later(HOUR_MS);
    expect(world.starts()).toEqual(['wf@0']);
  });
});

describe('what is wrong with a request', () => {
  it('never looks like the end of the run to the step that waits (4.7)', async () => {
    await begin('wfr_1');
    const replies: Reply[] = [
      await waitFor('a:b', 'wfr_1'),
      await waitFor('e', 'wfr_1', { timeout: 'soon' }),
      await waitFor('e', 'wfr_1', { step: 7 }),
      await waitFor('e', 'wfr_1', {}, { 'upstash-retries': 'many' }),
      await waitFor('e', 'wfr_1', {}, { 'upstash-workflow-init': 'true' }),
      await world.post('wait/e', '{', headersOf('wfr_1', false)),
      await world.post('wait/e', `{"step":{"a":${'['.repeat(9_000)}${']'.repeat(9_000)}}}`, headersOf('wfr_1', false)),
      await world.post('wait/e', '', headersOf('wfr_1', false)),
    ];
    expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 422));
  });

  it('is named where events have ids that cannot be (26.89)', async () => {
    for (const reply of [
      await world.post('notify/a:b', 'x'),
      await world.post('notify/r/a:b'),
      await world.get('waiters/a:b'),
    ]) {
      expect([reply.status, reply.json.error]).toEqual([
        400,
        'invalid event id a:b: only letters, digits, hyphen, period and underscore are allowed',
      ]);
    }
  });

  it('is an event that is too large', async () => {
    const large = 'x'.repeat(LIMITS.messageBytesMax + 1);
    expect((await world.post('notify/e', large)).status).toBe(413);
  });
});

describe('a redacted run', () => {
  it('shows hashes of its secrets to who lists waiters, and delivers them as they are', async () => {
    await begin('wfr_1', { 'upstash-redact-fields': 'header[X-Key]' });
    await waitFor('e', 'wfr_1', {}, { 'upstash-forward-x-key': 'secret' });
    const [waiter] = (await world.get('waiters/e')).json;
    expect(waiter.headers['Upstash-Forward-X-Key']).toEqual([expect.stringMatching(/^REDACTED:/)]);
    await world.post('notify/e', 'x');
    await later();
    expect(world.deliveries().at(-1)?.header).toMatchObject({ 'X-Key': ['secret'] });
  });
});

describe('a webhook', () => {
  const call = (path: string, request: object = {}) =>
    world.ask({
      method: 'POST',
      url: `/v2/workflows/hooks/${path}`,
      headers: { authorization: '', host: 'hooks.example' },
      ...request,
    });

  it('ends a wait with the request that was made, for which no token is asked (26.90)', async () => {
    await begin('wfr_1');
    await registered('evt_1', 'wfr_1', { step: { ...STEP, stepType: 'WaitForWebhook' } });
    const headers = { authorization: '', host: 'hooks.example', 'content-type': 'application/json', 'x-many': '1' };
    const reply = await call('first/wfr_1/evt_1?q=1', { method: 'PUT', headers, payload: '{"a":1}' });
    expect(reply.status).toBe(200);
    await later();
    const [step] = lastSteps();
    const event = JSON.parse(Buffer.from(String(step?.['out']), 'base64').toString());
    expect(event).toMatchObject({
      method: 'PUT',
      body: Buffer.from('{"a":1}').toString('base64'),
      proto: 'http',
      host: 'hooks.example',
      url: '/v2/workflows/hooks/first/wfr_1/evt_1?q=1',
    });
    expect(event.header).toMatchObject({ 'Content-Type': ['application/json'], 'X-Many': ['1'] });
  });

  it('may be called before the run waits, and each call is for one wait (26.91)', async () => {
    await begin('wfr_1');
    for (const method of ['GET', 'HEAD', 'OPTIONS', 'DELETE', 'PATCH']) {
      expect((await call('first/wfr_1/evt_1', { method })).status, method).toBe(200);
    }
    for (const stepId of [1, 2, 3]) await registered('evt_1', 'wfr_1', { step: { ...STEP, stepId } });
    await later();
    const events = lastSteps().map(({ out }) => JSON.parse(Buffer.from(String(out), 'base64').toString()));
    expect(events.map(({ method, body }) => [method, body])).toEqual([
      ['GET', undefined],
      ['HEAD', undefined],
      ['OPTIONS', undefined],
    ]);
  });

  it('wakes one of several waits of a run', async () => {
    await begin('wfr_1');
    for (const stepId of [1, 2]) await registered('evt_1', 'wfr_1', { step: { ...STEP, stepId } });
    await call('first/wfr_1/evt_1');
    expect((await world.get('waiters/evt_1')).json).toHaveLength(1);
  });

  it.each(['nobody/wfr_1/evt_1', 'second/wfr_1/evt_1', 'first/wfr_2/evt_1', 'first/wfr_1/a%3Ab'])(
    'that nobody has made answers 404: %s',
    async (path) => {
      await begin('wfr_1');
      expect((await call(path)).status).toBe(404);
    },
  );

  it('ends no wait for another event, which takes a token to notify of', async () => {
    await begin('wfr_1');
    await waitFor('order-paid', 'wfr_1');
    expect((await call('first/wfr_1/order-paid')).status).toBe(404);
    expect((await world.get('waiters/order-paid')).json).toHaveLength(1);
  });

  it('that nobody has made answers before it takes a body', async () => {
    await begin('wfr_1');
    const large = { payload: Buffer.alloc(LIMITS.messageBytesMax + 1) };
    for (const path of ['nobody/wfr_1/evt_1', 'first/wfr_2/evt_1']) expect((await call(path, large)).status).toBe(404);
    expect((await call('first/wfr_1/evt_1', large)).status).toBe(413);
  });

  it('of which no request could be made again is refused', async () => {
    await begin('wfr_1');
    expect((await call('first/wfr_1/evt_1', { headers: { authorization: '', host: 'user:pw@h' } })).status).toBe(400);
  });

  it('takes no more than a run may save', async () => {
    await begin('wfr_1');
    for (let sent = 0; sent < 1_000; sent += 1) await call('first/wfr_1/evt_1');
    expect((await call('first/wfr_1/evt_1')).status).toBe(412);
  });
});
