import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Delivered, openRunWorld, type RunWorld, WORKFLOW } from './support/run-world.ts';
import type { Json, Reply } from './support/world.ts';

let world: RunWorld;
beforeEach(async () => {
  world = await openRunWorld();
});
afterEach(() => world.close());

const BROKEN = { status: 500, body: 'broken' };
const result = (stepId: number, changes = {}) => ({
  stepId,
  stepName: `s${stepId}`,
  stepType: 'Run',
  out: '"o"',
  concurrent: 1,
  ...changes,
});
const idsOf = ({ json }: Reply): string[] => json.messages.map(({ dlqId }: Json) => dlqId);
const runsOf = ({ json }: Reply): string[] => json.messages.map(({ workflowRunId }: Json) => workflowRunId);
const stepsOf = ({ entries }: Delivered): string[] =>
  entries.slice(1).map((entry) => {
    const { stepId, targetStep } = JSON.parse(entry);
    return stepId > 0 ? `s${stepId}` : `p${targetStep}`;
  });

/** Fails the deliveries for which `when` says so. */
function breakWhen(when: (delivered: Delivered) => boolean): void {
  world.respondWith((delivered) => (when(delivered) ? BROKEN : { status: 200 }));
}

describe('the dead letter queue of runs (contract W 21.1)', () => {
  it('is listed newest first, page by page, by filters', async () => {
    const a = await world.fail('wfr_a', { headers: { 'upstash-label': 'x' } });
    await world.clock.advanceBy(1_000);
    const betweenMs = world.clock.nowMs() - 500;
    const b = await world.fail('wfr_b', { url: 'https://other.example/wf' });
    await world.clock.advanceBy(1_000);
    const c = await world.fail('wfr_c');
    const list = async (query: string) => idsOf(await world.get(`workflows/dlq?${query}`));
    const first = (await world.get('workflows/dlq?count=2')).json;
    expect(first.messages.map(({ dlqId }: Json) => dlqId)).toEqual([c, b]);
    expect((await world.get(`workflows/dlq?count=2&cursor=${first.cursor}`)).json).toMatchObject({
      messages: [{ dlqId: a }],
    });
    expect(await list('label=x')).toEqual([a]);
    expect(await list('workflowUrl=https://other.example/wf')).toEqual([b]);
    expect(await list('workflowUrl=https://other.example')).toEqual([]);
    expect(await list('workflowRunId=wfr_c&responseStatus=500')).toEqual([c]);
    expect(await list(`workflowCreatedAt=${(await world.get(`workflows/dlq/${a}`)).json.workflowCreatedAt}`)).toEqual([
      a,
    ]);
    expect(await list('failureFunctionState=CALLBACK_FAIL')).toEqual([c, b, a]);
    expect(await list('failureCallbackState=CALLBACK_SUCCESS')).toEqual([]);
    expect(await list(`fromDate=${betweenMs}`)).toEqual([c, b]);
    expect(await list(`toDate=${betweenMs}`)).toEqual([a]);
    expect(await list(`dlqIds=${a},${c},1-1&label=nobody`)).toEqual([c, a]);
  });

  it('loses what is deleted: one, by ids, by filters', async () => {
    const ids: string[] = [];
    for (const name of ['a', 'b', 'c', 'd', 'e']) ids.push(await world.fail(`wfr_${name}`));
    expect((await world.delete(`workflows/dlq/${ids[0]}`)).status).toBe(200);
    expect((await world.delete(`workflows/dlq/${ids[0]}`)).status).toBe(404);
    expect((await world.delete(`workflows/dlq/delete/${ids[1]}`)).status).toBe(200);
    expect((await world.delete(`workflows/dlq?dlqIds=${ids[1]},${ids[2]}`)).json).toEqual({ deleted: 1 });
    const page = (await world.delete('workflows/dlq?count=1')).json;
    expect(page).toEqual({ deleted: 1, cursor: expect.any(String) });
    expect((await world.delete(`workflows/dlq?cursor=${page.cursor}`)).json).toEqual({ deleted: 1 });
    expect((await world.get('workflows/dlq')).json).toEqual({ messages: [] });
    expect((await world.get('workflows/dlq/nonsense')).status).toBe(400);
  });

  it('and that of messages know nothing of each other', async () => {
    const run = await world.fail('wfr_a');
    world.respondWith(() => BROKEN);
    const message = await world.bury('https://plain.example/');
    expect(idsOf(await world.get('dlq'))).toEqual([message]);
    expect(idsOf(await world.get('workflows/dlq'))).toEqual([run]);
    expect((await world.get(`workflows/dlq/${message}`)).status).toBe(404);
    expect((await world.delete(`dlq/${run}`)).status).toBe(404);
    expect((await world.post(`dlq/retry/${run}`)).status).toBe(404);
    expect((await world.delete('dlq')).json).toEqual({ deleted: 1 });
    expect((await world.post(`workflows/dlq/resume/${message}`)).status).toBe(404);
    expect(runsOf(await world.get('workflows/dlq'))).toEqual(['wfr_a']);
  });
});

describe('a resumed run (contract W 21.3)', () => {
  async function resumed(dlqId: string, headers?: Record<string, string>): Promise<string> {
    world.respondWith(() => ({ status: 200 }));
    const reply = await world.post(`workflows/dlq/resume/${dlqId}`, headers);
    expect(reply.status, reply.text).toBe(200);
    expect(reply.json).toEqual({ workflowRunId: expect.any(String), workflowCreatedAt: world.clock.nowMs() });
    await world.settled();
    return reply.json.workflowRunId;
  }

  it('has what the headers replace, and the id that they give it', async () => {
    const dlqId = await world.fail('wfr_a');
    const headers = { 'upstash-retries': '2', 'waypost-label': 'again', 'upstash-workflow-runid': 'mine' };
    const runId = await resumed(dlqId, headers);
    expect(runId).toBe('mine');
    const again = await world.fail('wfr_b');
    const ofCallback = { 'upstash-failure-callback': WORKFLOW, 'upstash-failure-callback-workflow-runid': 'theirs' };
    expect(await resumed(await world.fail('wfr_c'), ofCallback)).toMatch(/^wfr_/);
    expect((await world.post(`workflows/dlq/resume/${again}`, { 'upstash-workflow-runid': 'mine' })).status).toBe(400);
    for (const start of ['resume', 'restart']) {
      const { status, json } = await world.post(`workflows/dlq/${start}/${again}`, { 'upstash-workflow-runid': 'x?y' });
      expect([status, json.error]).toEqual([400, expect.stringMatching(/^invalid upstash-workflow-runid: /i)]);
    }
    expect((await world.get(`workflows/dlq/${again}`)).status).toBe(200);
    expect((await world.delete('workflows/runs?label=again')).json).toEqual({ cancelled: 1 });
  });

  it('can fail again, and be resumed again', async () => {
    await world.trigger('wfr_a');
    breakWhen(({ callType }) => callType === 'step');
    await world.append('wfr_a', [{ step: result(1) }]);
    world.respondWith(() => BROKEN);
    const { workflowRunId } = (await world.post(`workflows/dlq/resume/${await world.dlqIdOf('wfr_a')}`)).json;
    const runId = await resumed(await world.dlqIdOf(workflowRunId));
    expect(world.of(runId).map(stepsOf)).toEqual([['s1']]);
  });

  it('is refused for what is not there, and for headers that no run has', async () => {
    const dlqId = await world.fail('wfr_a');
    expect((await world.post('workflows/dlq/resume/1-1')).status).toBe(404);
    expect((await world.post('workflows/dlq/resume/nonsense')).status).toBe(400);
    expect((await world.post(`workflows/dlq/resume/${dlqId}`, { 'upstash-retries': '-1' })).status).toBe(400);
    expect((await world.post(`workflows/dlq/resume/${dlqId}`, { 'upstash-method': 'GET' })).status).toBe(400);
  });

  it('is one of many in a bulk, up to fifty at a time', async () => {
    const ids: string[] = [];
    for (const name of ['a', 'b', 'c'])
      ids.push(await world.fail(`wfr_${name}`, { headers: { 'upstash-label': name } }));
    world.respondWith(() => ({ status: 200 }));
    const some = (await world.post(`workflows/dlq/resume?dlqIds=${ids[0]},1-1`)).json;
    expect(some).toEqual({
      workflowRuns: [{ workflowRunId: expect.any(String), workflowCreatedAt: expect.any(Number) }],
    });
    expect((await world.post(`workflows/dlq/resume?dlqIds=${ids[0]},1-1`)).status).toBe(404);
    expect(
      (await world.post('workflows/dlq/resume', {}, JSON.stringify({ label: 'b' }))).json.workflowRuns,
    ).toHaveLength(1);
    const rest = (await world.post('workflows/dlq/restart?count=100')).json;
    expect([rest.workflowRuns.length, rest.cursor]).toEqual([1, undefined]);
    expect((await world.post('workflows/dlq/restart', { 'upstash-workflow-runid': 'x' })).status).toBe(400);
  });
});

describe('the failure callback of a failed run (contract W 21.5)', () => {
  it('is given up while it is in progress, and can then not be told again', async () => {
    const headers = { 'upstash-failure-callback': WORKFLOW, 'upstash-failure-callback-retries': '3' };
    const dlqId = await world.fail('wfr_a', { headers });
    expect((await world.get(`workflows/dlq/${dlqId}`)).json.failureFunctionState).toBe('CALLBACK_INPROGRESS');
    const before = world.deliveries.length;
    expect((await world.delete(`workflows/dlq/callback/${dlqId}`)).status).toBe(200);
    expect((await world.get(`workflows/dlq/${dlqId}`)).json.failureFunctionState).toBe('CALLBACK_CANCELED');
    expect((await world.delete(`workflows/dlq/callback/${dlqId}`)).status).toBe(400);
    expect((await world.post(`workflows/dlq/callback/${dlqId}`)).status).toBe(400);
    expect((await world.delete('workflows/dlq/callback/1-1')).status).toBe(404);
    await world.clock.advanceBy(7 * 86_400_000);
    expect(world.deliveries.length).toBe(before);
  });
});
