/**
 * The password of a destination is sent only to the endpoint: no response, callback or log line of the server contains it
 * (contract M 5.2.4).
 */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openRunWorld, type RunWorld, stepHeaders } from './support/run-world.ts';
import type { Reply } from './support/world.ts';

const PASSWORD = 'c4n4ry';
const MASKED = 'https://ann:***@';

const at = (place: string, password = PASSWORD) => `https://ann:${password}@${place}.example/in`;

/** What is shown, and where. */
let seen: [where: string, text: string][];
let world: RunWorld;

beforeEach(async () => {
  seen = [];
  world = await openRunWorld();
  world.respondWith(({ url }) => ({ status: url.includes('@fail.') ? 500 : 200 }));
});
afterEach(() => world.close());

function note(asked: string, reply: Reply): Reply {
  expect(reply.status, `${asked}: ${reply.text}`).toBeLessThan(300);
  seen.push([asked, withDecoded(reply.text)]);
  return reply;
}

async function get(path: string): Promise<Reply> {
  return note(`GET ${path}`, await world.get(path));
}

async function post(path: string, headers: Record<string, string> = {}, body: unknown = {}): Promise<Reply> {
  return note(`POST ${path}`, await world.post(path, headers, typeof body === 'string' ? body : JSON.stringify(body)));
}

/** With what is in it as base64. */
function withDecoded(text: string): string {
  const decoded = text.match(/[A-Za-z0-9+/]{16,}={0,2}/g) ?? [];
  return [text, ...decoded.map((base64) => Buffer.from(base64, 'base64').toString())].join('\n');
}

/** That each response shows a masked URL proves that the password could have been in it. */
function expectMasked(): void {
  for (const [asked, text] of seen) {
    expect(text, asked).not.toContain(PASSWORD);
    expect(text, asked).toContain(MASKED);
  }
  expect(JSON.stringify(world.logLines)).not.toContain(PASSWORD);
}

const CALLBACKS = { 'upstash-callback': at('ok'), 'upstash-failure-callback': at('ok'), 'upstash-retries': '0' };

describe('the password of a destination', () => {
  it('is masked in what is said of messages', async () => {
    const published = await post(`publish/${at('fail')}`, CALLBACKS, 'body');
    await post('batch', {}, [{ destination: at('ok'), headers: CALLBACKS }]);
    const held = (await post(`publish/${at('later')}`, { ...CALLBACKS, 'upstash-delay': '1h' })).json.messageId;
    await world.settled();
    expect(world.deliveries.map(({ url }) => url)).toContain(at('fail'));
    const callbacks = world.deliveries.filter(({ body }) => body.includes('sourceMessageId'));
    expect(callbacks).toHaveLength(3);
    for (const { body } of callbacks) seen.push(['callback', body]);
    const { dlqId } = (await get(`dlq?messageId=${published.json.messageId}`)).json.messages[0];
    for (const path of ['logs', 'events', 'dlq', 'waypost/messages', 'waypost/live/entries?count=100']) await get(path);
    for (const path of [`dlq/${dlqId}`, `messages/${held}`, `logs?url=${encodeURIComponent(at('fail'))}`])
      await get(path);
    expectMasked();
  });

  it('is masked in URL groups, and in the defaults of these', async () => {
    const endpoints = [{ url: at('ok') }, { url: at('fail'), name: 'second' }];
    await world.post('topics/g/endpoints', {}, JSON.stringify({ endpoints }));
    await world.ask({ method: 'PATCH', url: '/v2/topics/g', payload: JSON.stringify({ headers: CALLBACKS }) });
    await post('publish/g', CALLBACKS);
    for (const path of ['topics', 'topics/g']) await get(path);
    expect(seen.at(-1)?.[1].split(MASKED)).toHaveLength(1 + 4);
    expectMasked();
  });

  it('is masked in schedules', async () => {
    await world.post(`schedules/${at('ok')}`, {
      ...CALLBACKS,
      'upstash-cron': '* * * * *',
      'upstash-schedule-id': 's',
    });
    for (const path of ['schedules', 'schedules/s']) await get(path);
    expectMasked();
  });

  it('is masked in what is said of workflow runs', async () => {
    const url = at('app');
    await world.trigger('wfr_a', { url });
    const step = { ...stepHeaders('wfr_a'), 'upstash-workflow-url': url };
    const forRun = Object.fromEntries(Object.entries(step).map(([name, value]) => [name, [value]]));
    const wait = { stepId: 1, stepName: 'wait', stepType: 'Wait', concurrent: 1 };
    const waiting = { url, timeout: '60s', timeoutUrl: url, timeoutHeaders: forRun, step: wait };
    expect((await world.post('wait/evt', step, JSON.stringify(waiting))).status).toBe(200);
    const invoked = { body: '', headers: forRun, workflowRunId: 'wfr_a', workflowUrl: url };
    const invoke = { stepId: 2, stepName: 'invoke', stepType: 'Invoke', concurrent: 1 };
    const child = { ...step, 'upstash-workflow-init': 'true', 'upstash-workflow-runid': 'wfr_b' };
    const asked = { ...child, 'upstash-workflow-url': at('child'), 'upstash-workflow-invoke': 'true' };
    const started = await world.post(`publish/${at('child')}`, asked, JSON.stringify({ ...invoked, step: invoke }));
    expect(started.status, started.text).toBe(200);
    await world.settled();
    for (const path of ['waiters/evt', 'waypost/waiters']) await get(path);
    await post('notify/evt');
    await get('workflows/runs/wfr_a/explain');
    await world.call('wfr_a', 3, at('fail'), { 'upstash-delay': '1h' });
    await get('workflows/runs/wfr_a/explain');
    const failed = await world.fail('wfr_c', { url, headers: { 'upstash-failure-callback': at('ok') } });
    await world.settled();
    for (const path of ['workflows/logs', 'workflows/events', 'workflows/messageLogs']) await get(path);
    for (const path of ['workflows/dlq', `workflows/dlq/${failed}`]) await get(path);
    const told = world.deliveries.filter(({ callType }) => callType === 'failureCall');
    expect(told).toHaveLength(1);
    for (const { body } of told) seen.push(['failure callback', body]);
    expectMasked();
  });
});

describe('a URL with a masked password', () => {
  it.each([
    ['the destination of a publish', () => world.post(`publish/${at('ok', '***')}`)],
    ['a callback', () => world.post(`publish/${at('ok')}`, { 'upstash-callback': at('ok', '***') })],
    [
      'the destination of a schedule',
      () => world.post(`schedules/${at('ok', '***')}`, { 'upstash-cron': '* * * * *' }),
    ],
    [
      'an endpoint of a URL group',
      () => world.post('topics/g/endpoints', {}, JSON.stringify({ endpoints: [{ url: at('ok', '***') }] })),
    ],
  ])('is refused as %s, since its endpoint would be called with a wrong password', async (_where, ask) => {
    const { status, json } = await ask();
    expect(status).toBe(400);
    expect(json.error).toContain('endpoint has the placeholder *** as its password');
  });

  it('names the endpoints to remove from a URL group that are shown as this URL', async () => {
    const endpoints = [at('ok', 'one'), at('ok', 'two'), at('fail')].map((url) => ({ url }));
    await world.post('topics/g/endpoints', {}, JSON.stringify({ endpoints }));
    await world.delete('topics/g/endpoints', {}, JSON.stringify({ endpoints: [{ url: at('ok', '***') }] }));
    expect((await get('topics/g')).json.endpoints).toEqual([{ url: at('fail', '***') }]);
  });
});
