/** Lists all events that runs wait for, an operation of ours under /v2/waypost. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Json, openWorld, type Reply, type World } from './support/world.ts';

const URL_OF_RUN = 'https://ok.example/wf';

let world: World;
beforeEach(async () => {
  world = await openWorld();
});
afterEach(() => world.close());

const list = (query = ''): Promise<Reply> => world.ask({ method: 'GET', url: `/v2/waypost/waiters${query}` });
const eventsOf = ({ json }: Reply): string[] => json.waiters.map(({ eventId }: Json) => eventId);

async function begin(runId: string, headers: Record<string, string> = {}): Promise<void> {
  const ofRun = { 'upstash-workflow-init': 'true', 'upstash-workflow-runid': runId, 'upstash-delay': '1h' };
  await world.publish(URL_OF_RUN, { ...ofRun, ...headers });
}

/** Returns the id of the wait. */
async function waitFor(eventId: string, runId: string, stepId = 1): Promise<string> {
  const headers = { 'upstash-workflow-init': 'false', 'upstash-workflow-runid': runId };
  const step = { stepId, stepName: 'hush', stepType: 'Wait', concurrent: 1 };
  const payload = JSON.stringify({ url: URL_OF_RUN, timeout: '1h', step });
  const { status, text, json } = await world.ask({ method: 'POST', url: `/v2/wait/${eventId}`, headers, payload });
  expect(status, text).toBe(200);
  return json.messageId;
}

describe('the list of all waiters', () => {
  it('says which run waits for which event, since when and until when', async () => {
    await begin('wfr_1');
    const messageId = await waitFor('paid', 'wfr_1');
    const { json } = await list();
    const [waiter] = json.waiters;
    expect(json).toEqual({
      waiters: [
        {
          ...{ eventId: 'paid', messageId, workflowRunId: 'wfr_1', workflowUrl: URL_OF_RUN },
          ...{ workflowCreatedAt: expect.any(Number), since: expect.any(Number), deadline: waiter.since + 3_600_000 },
        },
      ],
    });
    await world.ask({ method: 'POST', url: '/v2/notify/paid' });
    expect((await list()).json).toEqual({ waiters: [] });
  });

  it('is by event, of those whose ids begin as is asked, in pages', async () => {
    await begin('wfr_1');
    for (const [index, event] of ['paid-2', 'asked', 'paid-1'].entries()) await waitFor(event, 'wfr_1', index + 1);
    expect(eventsOf(await list())).toEqual(['asked', 'paid-1', 'paid-2']);
    expect(eventsOf(await list('?eventIdPrefix=paid'))).toEqual(['paid-1', 'paid-2']);
    const first = await list('?count=2');
    expect(eventsOf(first)).toEqual(['asked', 'paid-1']);
    const rest = await list(`?count=2&cursor=${first.json.cursor}`);
    expect(eventsOf(rest)).toEqual(['paid-2']);
    expect(rest.json).not.toHaveProperty('cursor');
    for (const cursor of ['x', '1-', '-paid', `${'9'.repeat(20)}-paid`, '1-%C3%A9'])
      expect((await list(`?cursor=${cursor}`)).status, cursor).toBe(400);
  });

  it('has nothing of what a wait was registered with', async () => {
    const secret = { 'upstash-redact-fields': 'body,header[X-Secret]', 'upstash-forward-x-secret': 'hush' };
    await begin('wfr_1', secret);
    await waitFor('paid', 'wfr_1');
    expect((await list()).text).not.toContain('hush');
  });
});
