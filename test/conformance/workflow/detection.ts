/** Detects whether a workflow library serves the URL, and which one (contract W 26.22 to 26.29, 5.3, 6.1). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';
import type { Json, Subject } from '../support/subject.ts';
import { DONE, deliveryOf, FEATURES, fail, OLD_FEATURES, Run, start } from '../support/workflow.ts';

const TOO_OLD = 'trigger rest api is only usable with sdk versions after v1.0.0 major version';
const NOT_A_WORKFLOW =
  'detected a non-workflow destination for trigger/invoke. make sure you are sending the request to the correct endpoint';

/** A run at `path` that is triggered by REST with these headers. */
async function trigger(server: Subject, headers: Record<string, string> = {}, path = '/wf'): Promise<Run> {
  const target = `/v2/trigger/${server.destination(path)}`;
  const { workflowRunId: id } = await server.post(target, undefined, { headers, body: 'payload' });
  const { messageId } = deliveryOf(await server.endpoint.arrival(path));
  return new Run(server, { id, path, features: FEATURES }, messageId);
}

/** What the library publishes when it is delivered a run that does not know it yet. */
async function introduce(server: Subject, id: string): Promise<Json> {
  const url = server.destination('/wf');
  const headers = {
    'upstash-workflow-init': 'true',
    'upstash-workflow-runid': id,
    'upstash-workflow-url': url,
    'upstash-workflow-sdk-version': '1',
    'upstash-forward-upstash-workflow-sdk-version': '1',
    'upstash-workflow-trigger-by-sdk': 'true',
    'upstash-feature-set': FEATURES,
    'upstash-forward-x-user': 'another',
    'upstash-method': 'POST',
    'content-type': 'application/json',
  };
  return (await server.post('/v2/batch', [{ destination: url, headers, body: 'payload' }]))[0];
}

const UNKNOWN = { 'Upstash-Workflow-Unknown-Sdk': 'true' };
const USER = { 'Upstash-Forward-X-User': 'u', 'Upstash-Label': 'l', 'Upstash-Retries': '1' };

export const detection: Section = {
  title: 'Unknown libraries, detection',
  statements: [
    statement(
      'W22',
      'A trigger for an unknown library is delivered with that marker and without a version.',
      async (server) => {
        server.endpoint.replies('/wf', DONE);
        const run = await trigger(server, UNKNOWN);
        const byTrigger = await run.delivery(1);
        const forwarded = await start(server, {
          id: 'wfr_x',
          payload: 'payload',
          headers: { 'upstash-forward-upstash-workflow-unknown-sdk': 'true' },
        });
        const byPublish = await forwarded.delivery(1);
        for (const { texts, headers } of [byTrigger, byPublish]) {
          expect(texts).toEqual(['payload']);
          expect(headers['upstash-workflow-unknown-sdk']).toBe('true');
          expect(headers).not.toHaveProperty('upstash-workflow-sdk-version');
        }
        expect(byTrigger.headers['upstash-workflow-runid']).toBe(run.id);
        expect(byPublish.headers['upstash-workflow-runid']).toBe('wfr_x');
      },
    ),

    statement('W23', 'When the library identifies itself, the run is delivered once as usual.', async (server) => {
      server.endpoint.replies('/wf', DONE);
      const run = await trigger(server, { ...UNKNOWN, ...USER });
      const answer = await introduce(server, run.id);
      expect(answer.messageId).toMatch(/^msg_/);
      expect(answer).not.toHaveProperty('deduplicated');
      const { texts, headers, entries, messageId } = await run.lastDelivery(2);
      expect([texts, entries[0]?.messageId]).toEqual([['payload'], messageId]);
      expect(headers).toMatchObject({
        'upstash-workflow-runid': run.id,
        'upstash-workflow-sdk-version': '1',
        'upstash-label': 'l',
        'x-user': 'u',
      });
      expect(headers).not.toHaveProperty('upstash-workflow-unknown-sdk');
      expect(await run.journal()).toHaveLength(1);
      await run.step({ stepId: 1, stepName: 'a', stepType: 'Run', out: '1', concurrent: 1 });
      expect((await run.delivery(3)).texts).toHaveLength(2);
      expect(await introduce(server, run.id)).toMatchObject({ deduplicated: true });
      await run.lastDelivery(3);
    }),

    statement('W24', 'The log of such a run has one Initial step and one start.', async (server) => {
      server.endpoint.replies('/wf', DONE);
      const run = await trigger(server, UNKNOWN);
      await introduce(server, run.id);
      await run.delivery(2);
      await run.finish();
      const { steps } = await run.shown();
      expect(steps.map(({ type, steps: [step] }: Json) => [type, step.stepType])).toEqual([['sequential', 'Initial']]);
      expect((await run.states()).filter((state) => state === 'RUN_STARTED')).toHaveLength(1);
    }),

    statement(
      'W25',
      'A run started over REST fails immediately if no library of 1.0 or later responds.',
      async (server) => {
        // The version alone is what libraries of before 1.0 answer with.
        for (const headers of [{}, { 'Upstash-Workflow-Sdk-Version': '1' }]) {
          const path = server.endpoint.newPath();
          server.endpoint.replies(path, { body: 'hello', headers });
          const run = await trigger(server, {}, path);
          const { steps } = await run.reached('RUN_FAILED');
          expect(steps).toHaveLength(2);
          expect(steps[0].steps[0]).toMatchObject({ stepType: 'Initial', state: 'STEP_SUCCESS' });
          const error = { error: TOO_OLD };
          expect(steps[1]).toMatchObject({ type: 'next', steps: [{ state: 'STEP_FAILED', errors: [error] }] });
        }
      },
    ),

    statement(
      'W26',
      'A run fails immediately if the response is not from a library that can identify itself.',
      async (server) => {
        server.endpoint.replies('/not', { body: 'hello' });
        const run = await start(server, { path: '/not', failureUrl: server.destination('/failure') });
        const { steps } = await run.reached('RUN_FAILED');
        expect(steps).toHaveLength(2);
        expect(steps[1].type).toBe('next');
        expect(steps[1].steps).toEqual([expect.objectContaining({ state: 'STEP_FAILED' })]);
        expect(steps[1].steps[0].errors).toEqual([
          expect.objectContaining({ error: NOT_A_WORKFLOW, body: 'hello', status: 200 }),
        ]);
        await run.lastDelivery(1);
        const events = (await run.events()).filter(({ stepInfo }) => stepInfo?.callType !== 'failureCall');
        expect(events.map(({ state }) => state).slice(-3)).toEqual(['ERROR', 'FAILED', 'RUN_FAILED']);
      },
    ),

    statement('W27', 'Without its flag, the same response is an ordinary delivery.', async (server) => {
      server.endpoint.replies('/not', { body: 'hello' });
      const run = await start(server, { path: '/not', features: OLD_FEATURES });
      await run.logged('DELIVERED');
      expect((await run.shown()).workflowState).toBe('RUN_STARTED');
    }),

    statement('W28', 'The target of a call need not be a workflow.', async (server) => {
      const run = await start(server);
      await run.delivery(1);
      await run.call('/third');
      const { body } = await run.delivery(2);
      expect(JSON.parse(body.toString()).status).toBe(200);
      expect((await run.shown()).workflowState).toBe('RUN_STARTED');
    }),

    statement('W29', 'The target of a failure callback need not be a workflow.', async (server) => {
      const run = await fail(server, { failureUrl: server.destination('/failure') });
      await server.endpoint.arrival('/failure');
      await run.told('CALLBACK_SUCCESS');
    }),
  ],
};
