/** What concerns workflows: the flat log, and notify (contract I 4.4, 4.5). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';
import type { Json, Subject } from '../support/subject.ts';
import { BROKEN, fail, type Run, runStep, startAndDeliver, waitStep } from '../support/workflow.ts';

const FLAT = '/v2/workflows/messageLogs';

async function events(server: Subject, query = ''): Promise<Json[]> {
  return (await server.get(`${FLAT}?${query}`)).events;
}

/** A run that has ended with success after one step. */
async function successfulRun(server: Subject): Promise<Run> {
  const run = await startAndDeliver(server);
  await run.step(runStep(1));
  await run.delivery(2);
  await run.finish('"done"');
  await run.logged('DELIVERED', 2);
  return run;
}

export const workflows: Section = {
  title: 'Workflows',
  statements: [
    statement('I29', 'Message logs of workflows are listed flat, with cursor and events.', async (server) => {
      expect(await server.get(FLAT)).toEqual({ events: [] });
      const run = await successfulRun(server);
      const list = await server.get(`${FLAT}?count=2`);
      expect(Object.keys(list).sort()).toEqual(['cursor', 'events']);
      expect([list.events.length, typeof list.cursor]).toEqual([2, 'string']);
      const states = await run.states();
      expect(states.slice(0, 3)).toEqual(['RUN_STARTED', 'CREATED', 'ACTIVE']);
      expect([...states].sort()).toEqual([
        'ACTIVE',
        'ACTIVE',
        'CREATED',
        'CREATED',
        'DELIVERED',
        'DELIVERED',
        'RUN_STARTED',
        'RUN_SUCCESS',
      ]);
      expect((await run.logged('RUN_SUCCESS')).workflowRunResponse).toBe('"done"');
    }),

    statement('I30', 'A log entry of a step has its step information; one of a run has none.', async (server) => {
      const run = await startAndDeliver(server, { headers: { 'upstash-retries': '0' } });
      const messageId = await run.step(runStep(1, '"out"'));
      await run.delivery(2);
      const created = await run.logged('CREATED', 2);
      const nowMs = server.clock.nowMs();
      expect(created).toMatchObject({
        time: nowMs,
        state: 'CREATED',
        workflowRunId: run.id,
        workflowUrl: run.url,
        workflowCreatedAt: nowMs,
        nextDeliveryTime: nowMs,
        stepInfo: {
          stepName: 'run-1',
          stepType: 'Run',
          callType: 'step',
          messageId,
          concurrent: 1,
          createdAt: nowMs,
          stepId: 1,
          out: '"out"',
        },
      });
      const initial = await run.logged('CREATED', 1);
      const info = { stepName: 'init', stepType: 'Initial', callType: 'step', messageId: run.messageId, concurrent: 1 };
      expect(initial.stepInfo).toMatchObject({ ...info, createdAt: nowMs });
      const started = await run.logged('RUN_STARTED');
      expect(started).not.toHaveProperty('stepInfo');
      expect(started).toMatchObject({ time: nowMs, workflowRunId: run.id, workflowUrl: run.url });
      server.endpoint.replies(run.path, BROKEN);
      await run.step(runStep(2));
      expect(await run.logged('ERROR')).toMatchObject({
        headers: expect.objectContaining({ 'Content-Type': ['application/json'] }),
        error: '500 Internal Server Error',
        responseStatus: 500,
        responseBody: BROKEN.body,
        responseHeaders: expect.objectContaining({ 'Upstash-Workflow-Sdk-Version': ['1'] }),
        stepInfo: { stepId: 2 },
      });
    }),

    statement(
      'I31',
      'The list accepts its filters: run, URL, creation date, state, message, start, end.',
      async (server) => {
        const startMs = server.clock.nowMs();
        const one = await successfulRun(server);
        server.clock.advance(1000);
        const two = await fail(server, { failureUrl: server.destination('/failure') });
        const idsOf = async (query: string): Promise<string[]> => {
          const found = await events(server, query);
          return [...new Set(found.map(({ workflowRunId }) => workflowRunId))].sort();
        };
        const both = [one.id, two.id].sort();
        expect(await idsOf('')).toEqual(both);
        expect(await idsOf(`workflowRunId=${one.id}`)).toEqual([one.id]);
        expect(await idsOf(`workflowUrl=${encodeURIComponent(two.url)}`)).toEqual([two.id]);
        expect(await idsOf(`workflowCreatedAt=${startMs}`)).toEqual([one.id]);
        expect(await idsOf('state=RUN_SUCCESS')).toEqual([one.id]);
        expect(await idsOf('state=ERROR')).toEqual([two.id]);
        expect(await idsOf('state=CREATED')).toEqual(both);
        const ofMessage = await events(server, `messageId=${two.messageId}`);
        expect(ofMessage.map(({ state }) => state)).toEqual(['FAILED', 'ERROR', 'ACTIVE', 'CREATED']);
        expect(await idsOf(`fromDate=${startMs + 1000}`)).toEqual([two.id]);
        expect(await idsOf(`fromDate=${startMs + 1001}`)).toEqual([]);
        expect(await idsOf(`toDate=${startMs}`)).toEqual([one.id]);
        expect(await idsOf(`toDate=${startMs - 1}`)).toEqual([]);
        expect((await server.ask('GET', `${FLAT}?state=AWAY`)).status).toBe(400);
      },
    ),

    statement('I32', 'A page has 1000 entries by default and at most.', async (server) => {
      const run = await startAndDeliver(server);
      const headers = { 'upstash-delay': '1h' };
      const steps = Array.from({ length: 1000 }, (_, index) => runStep(index + 1));
      await server.post('/v2/batch', run.stepItems(steps, headers));
      for (const query of ['', 'count=1000', 'count=5000']) {
        const { events, cursor } = await server.get(`${FLAT}?${query}`);
        expect([events.length, typeof cursor], query).toEqual([1000, 'string']);
        const rest = await server.get(`${FLAT}?${query}&cursor=${encodeURIComponent(cursor)}`);
        expect(rest.events.length).toBeGreaterThan(0);
        expect(rest).not.toHaveProperty('cursor');
      }
    }),

    statement('I33', 'A notify returns each waiter with the message that it was sent.', async (server) => {
      const runs = [await startAndDeliver(server), await startAndDeliver(server)];
      for (const run of runs) await run.wait('e', { timeout: '1h', step: waitStep(1) });
      const answer = await server.post('/v2/notify/e', { a: 1 });
      const expected = [];
      for (const run of runs) {
        const { messageId } = await run.delivery(2);
        const headers = { 'Upstash-Workflow-Runid': [run.id], 'Upstash-Workflow-Url': [run.url] };
        const waiter = { url: run.url, headers: expect.objectContaining(headers), deadline: expect.any(Number) };
        expected.push(expect.objectContaining({ messageId, waiter: expect.objectContaining(waiter) }));
      }
      expect(answer).toHaveLength(2);
      expect(answer).toEqual(expect.arrayContaining(expected));
    }),

    statement('I34', 'A notify without a waiter returns an empty array.', async (server) => {
      expect(await server.post('/v2/notify/nobodys', { a: 1 })).toEqual([]);
    }),
  ],
};
