/** What logs show of runs (contract W 26.97 to 26.101, 18 to 20). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';
import type { Json, Subject } from '../support/subject.ts';
import { DONE, plans, type Run, replyOf, runStep, start, startAndDeliver, waitStep } from '../support/workflow.ts';

const LOGS = '/v2/workflows/logs';

function idsOf({ runs }: Json): string[] {
  return runs.map(({ workflowRunId }: Json) => workflowRunId);
}

/** `sequential Run`, `parallel Run Run`: the groups of the run and the types of their steps. */
function outline({ steps }: Json): string[] {
  return steps.map((group: Json) => [group.type, ...group.steps.map(({ stepType }: Json) => stepType)].join(' '));
}

/** A run that has executed a step of each kind, and now waits. */
async function variedRun(server: Subject): Promise<Run> {
  server.endpoint.replies('/third', { status: 402, headers: { 'x-third': 't' }, body: 'pay' });
  const run = await startAndDeliver(server);
  await run.step(runStep(1, '{"x":1}'));
  await run.delivery(2);
  await run.steps(plans(2, 2));
  for (const stepId of [2, 3]) await run.step({ ...runStep(stepId), concurrent: 2 });
  await run.delivery(6);
  await run.call('/third', { stepId: 4, method: 'POST', body: 'question', headers: { 'upstash-forward-x-call': 'c' } });
  await run.delivery(7);
  const out = '{"status":402,"body":"pay","header":{}}';
  await run.step({ stepId: 4, stepName: 'call-4', stepType: 'Call', out, concurrent: 1 });
  await run.delivery(8);
  await run.wait('e', { step: waitStep(5), timeout: '20s' });
  await server.post('/v2/notify/e', undefined, { body: 'event' });
  await run.delivery(9);
  const child = await run.invoke({ stepId: 6, payload: 'in', user: { 'X-Child': 'c' } });
  await child.delivery(1);
  await child.finish('"out"');
  await run.delivery(10);
  await run.wait('e', { step: waitStep(7), timeout: '1m' });
  return run;
}

export const logs: Section = {
  title: 'Logs',
  statements: [
    statement('W97', 'Runs are listed newest first, ten on a page, under both paths.', async (server) => {
      const ids: string[] = [];
      for (let nth = 1; nth <= 12; nth += 1) {
        ids.unshift((await start(server)).id);
        server.clock.advance(1);
      }
      for (const path of [`${LOGS}?`, '/v2/workflows/events?groupBy=workflowRunId&']) {
        const first = await server.get(`${path}count=1000`);
        expect([idsOf(first), first.cursor]).toEqual([ids.slice(0, 10), expect.stringMatching(/./)]);
        const second = await server.get(`${path}cursor=${encodeURIComponent(first.cursor)}`);
        expect(idsOf(second)).toEqual(ids.slice(10));
        expect(second).not.toHaveProperty('cursor');
      }
      expect(await server.get(`${LOGS}?workflowRunId=${ids[3]}`)).toEqual(
        await server.get(`/v2/workflows/events?groupBy=workflowRunId&workflowRunId=${ids[3]}`),
      );
      const labelled = await start(server, { headers: { 'upstash-label': 'l' } });
      await labelled.delivery(1);
      await labelled.finish('"done"');
      const filters = {
        'label=l': [labelled.id],
        'state=RUN_SUCCESS': [labelled.id],
        [`workflowUrl=${encodeURIComponent(labelled.url)}`]: [labelled.id],
        [`messageId=${labelled.messageId}`]: [labelled.id],
        [`fromDate=${server.clock.nowMs()}`]: [labelled.id],
        [`workflowRuns=${labelled.id}@${await labelled.createdAtMs()}&label=other`]: [labelled.id],
        [`label=l&state=RUN_FAILED`]: [],
      };
      for (const [filter, found] of Object.entries(filters)) {
        expect(idsOf(await server.get(`${LOGS}?${filter}`)), filter).toEqual(found);
      }
      const [trimmed] = (await server.get(`${LOGS}?label=l&trimBody=0`)).runs;
      expect([trimmed.workflowRunResponse ?? '', trimmed.steps[0].steps[0].out ?? '']).toEqual(['', '']);
      for (const bytes of [2 ** 31 - 1, 2 ** 32, Number.MAX_SAFE_INTEGER]) {
        const [whole] = (await server.get(`${LOGS}?label=l&trimBody=${bytes}`)).runs;
        expect(whole.workflowRunResponse, `trimBody=${bytes}`).toBe('"done"');
      }
      for (const bad of ['count=0', 'cursor=?', 'state=RUN_AWAY', 'workflowUrl=wf']) {
        expect((await server.ask('GET', `${LOGS}?${bad}`)).status, bad).toBe(400);
      }
      expect((await server.ask('GET', '/v2/workflows/events?groupBy=label')).status).toBe(400);
    }),

    statement(
      'W98',
      'A run is shown as groups of steps; a call, a wait and an invocation are one each.',
      async (server) => {
        const run = await variedRun(server);
        const shown = await run.shown();
        expect(outline(shown)).toEqual([
          'sequential Initial',
          'sequential Run',
          'parallel Run Run',
          'sequential Call',
          'sequential Wait',
          'sequential Invoke',
          'sequential Wait',
        ]);
        const steps = shown.steps.map((group: Json) => group.steps.at(-1));
        expect(steps.map(({ state }: Json) => state)).toEqual([...Array(6).fill('STEP_SUCCESS'), 'STEP_PROGRESS']);
        const [initial, first, parallel, call, wait, invoke, pending] = steps;
        expect(initial).toMatchObject({ stepName: 'init', callType: 'step', concurrent: 1, out: '{"a":1}' });
        expect(initial).not.toHaveProperty('stepId');
        expect(first).toMatchObject({ stepId: 1, stepName: 'run-1', out: '{"x":1}', callType: 'step' });
        expect(parallel).toMatchObject({ stepId: 3, stepName: 'run-3', concurrent: 2 });
        expect(call).toMatchObject({
          stepId: 4,
          stepName: 'call-4',
          callUrl: server.destination('/third'),
          callMethod: 'POST',
          callBody: 'question',
          callHeaders: { 'X-Call': ['c'] },
          callResponseStatus: 402,
          callResponseBody: 'pay',
          callResponseHeaders: { 'X-Third': ['t'] },
        });
        expect(wait).toMatchObject({ stepId: 5, waitEventId: 'e', waitTimeoutDuration: '20s', out: 'event' });
        expect(wait).not.toHaveProperty('waitTimeout');
        expect(invoke).toMatchObject({
          stepId: 6,
          invokedWorkflowRunBody: 'in',
          invokedWorkflowRunHeaders: { 'X-Child': ['c'] },
          out: '{"body":"\\"out\\"","isCanceled":false,"isFailed":false}',
        });
        const waitTimeoutDeadline = server.clock.nowMs() + 60_000;
        expect(pending).toMatchObject({ stepId: 7, waitTimeoutDuration: '1m', waitTimeoutDeadline });
        await server.post('/v2/notify/e');
        await run.delivery(11);
        await run.finish('1');
        expect(outline(await run.shown())).toEqual(outline(shown));
      },
    ),

    statement('W99', 'A failing parallel step is shown in its place, with its errors.', async (server) => {
      const answer = server.endpoint.hold('/wf');
      const run = await startAndDeliver(server, {
        path: '/wf',
        headers: { 'upstash-retries': '0' },
        failureUrl: server.destination('/failure'),
      });
      answer(DONE);
      await run.steps(plans(1, 2));
      for (const nth of [2, 3]) {
        const { step } = await run.delivery(nth);
        if (step.targetStep === 1) await run.step({ ...runStep(1), concurrent: 2 });
        answer(step.targetStep === 1 ? DONE : replyOf(500, 'broken', { 'X-Answer': 'a' }));
      }
      await run.logged('RUN_FAILED');
      const { steps } = await run.shown();
      expect(steps.map(({ type }: Json) => type)).toEqual(['sequential', 'parallel']);
      const [, broken] = steps[1].steps;
      expect(broken).toMatchObject({ stepName: 'run-2', state: 'STEP_FAILED' });
      expect(broken.errors).toEqual([
        {
          error: '500 Internal Server Error',
          body: 'broken',
          headers: expect.objectContaining({ 'X-Answer': ['a'] }),
          status: 500,
          time: server.clock.nowMs(),
        },
      ]);
    }),

    statement('W100', 'The flat list has all events of a run, and paging returns each once.', async (server) => {
      const run = await variedRun(server);
      const { events } = await server.get(`/v2/workflows/messageLogs?workflowRunId=${run.id}`);
      const seen: Json[] = [];
      let cursor: string | undefined;
      do {
        const page = cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`;
        const answer = await server.get(`/v2/workflows/messageLogs?workflowRunId=${run.id}&count=7${page}`);
        expect(answer.events.length).toBeLessThanOrEqual(7);
        seen.push(...answer.events);
        cursor = answer.cursor;
        if (seen.length === 7) await run.steps(plans(20, 2)); // shifts nothing
      } while (cursor !== undefined);
      expect(seen).toEqual(events);
      const createdAt = await run.createdAtMs();
      for (const event of seen) {
        expect(event).toMatchObject({
          time: expect.any(Number),
          state: expect.any(String),
          workflowRunId: run.id,
          workflowUrl: run.url,
          workflowCreatedAt: createdAt,
        });
        expect('stepInfo' in event, event.state).toBe(!/^RUN_|^WAITER_ADDED$|^INVOKED$/.test(event.state));
        if ('stepInfo' in event) expect(event.stepInfo.messageId).toMatch(/^msg_/);
      }
    }),

    statement('W101', 'Sleeps are shown in milliseconds.', async (server) => {
      const run = await startAndDeliver(server);
      const sleep = { stepId: 1, stepName: 's', stepType: 'SleepFor', sleepFor: 10, concurrent: 1 };
      await run.step(sleep, { 'upstash-delay': '10s' });
      server.clock.advance(10_000);
      await run.delivery(2);
      const inWords = { stepId: 2, stepName: 't', stepType: 'SleepFor', sleepFor: '1m30s', concurrent: 1 };
      await run.step(inWords, { 'upstash-delay': '1m30s' });
      server.clock.advance(90_000);
      await run.delivery(3);
      const sleepUntil = Math.ceil(server.clock.nowMs() / 1000) + 5;
      const until = { stepId: 3, stepName: 'u', stepType: 'SleepUntil', sleepUntil, concurrent: 1 };
      await run.step(until, { 'upstash-not-before': String(sleepUntil) });
      const expected = [{ sleepFor: 10_000 }, { sleepFor: 90_000 }, { sleepUntil: sleepUntil * 1000 }];
      const steps = (await run.shown()).steps.slice(1).map((group: Json) => group.steps[0]);
      expect(steps).toMatchObject(expected);
      const infos = (await run.events()).filter(({ state }) => state === 'CREATED').slice(1);
      expect(infos.map(({ stepInfo }) => stepInfo)).toMatchObject(expected);
    }),
  ],
};
