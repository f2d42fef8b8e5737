/** Waits, notifications, timeouts and webhooks over HTTP, on a stopped clock (contract W 14.6, 14.7, 14.9). */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openTimedWorld, type TimedWorld, to } from './support/timed-world.ts';
import { LIMITS, type Reply } from './support/world.ts';

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

/** Starts a run, whose first delivery gets a response. */
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

async function later(ms = 2_000): Promise<void> {
  await world.clock.advanceBy(ms);
}

describe('a repeated wait', () => {
  it('gets the response of the first one, also after it has ended (4.6)', async () => {
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

  it.each(['nobody/wfr_1/evt_1', 'second/wfr_1/evt_1', 'first/wfr_2/evt_1', 'first/wfr_1/a%3Ab'])(
    'that does not exist returns 404: %s',
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

  it('that does not exist returns 404 before its body is read', async () => {
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
