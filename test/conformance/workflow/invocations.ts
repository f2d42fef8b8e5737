/** Runs that start others, and steps side by side (contract W 26.92 to 26.96, 14.8, 15). */
import { expect } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { type Section, statement } from '../support/statement.ts';
import type { Json } from '../support/subject.ts';
import { BROKEN, DONE, invokeStep, OVER, plans, runStep, startAndDeliver } from '../support/workflow.ts';

function outcome(result: { body?: string; isCanceled?: boolean; isFailed?: boolean }): Json {
  return { isCanceled: false, isFailed: false, ...result };
}

export const invocations: Section = {
  title: 'Invoke, parallel steps',
  statements: [
    statement('W92', 'An invocation starts a run of its own, with the payload in it.', async (server) => {
      const run = await startAndDeliver(server, { user: { 'X-User': 'parent' } });
      const child = await run.invoke({ id: 'wfr_child', payload: '{"grün":1}', user: { 'X-User': 'child' } });
      const delivery = await child.lastDelivery(1);
      expect([delivery.texts, delivery.messageId]).toEqual([['{"grün":1}'], child.messageId]);
      expect(delivery.headers).toMatchObject({
        'upstash-workflow-runid': 'wfr_child',
        'upstash-workflow-url': child.url,
        'upstash-workflow-init': 'true',
        'upstash-workflow-sdk-version': '1',
        'upstash-workflow-invoke-count': '1',
        'x-user': 'child',
      });
      for (const name of ['invoke', 'callback', 'failure-callback']) {
        expect(delivery.headers).not.toHaveProperty(`upstash-workflow-${name}`);
      }
      await child.step(runStep(1), { 'upstash-forward-upstash-workflow-invoke-count': '1' });
      expect((await child.delivery(2)).headers['upstash-workflow-invoke-count']).toBe('1');
      await run.lastDelivery(1);
      await run.finish();
      // Whoever has ended invokes nothing.
      await expect(run.invoke({ path: '/late', stepId: 2 })).rejects.toThrow(OVER);
      await server.quiet();
      expect(server.endpoint.to('/late')).toEqual([]);
    }),

    statement('W93', 'The end of the invoked run is the result of the step.', async (server) => {
      const run = await startAndDeliver(server);
      const ends: [stepId: number, path: string, out: Json][] = [
        [1, '/returns', outcome({ body: '{"x":1}' })],
        [2, '/nothing', outcome({})],
        [3, '/fails', outcome({ isFailed: true })],
        [4, '/canceled', outcome({ isCanceled: true })],
      ];
      for (const path of ['/returns', '/nothing', '/canceled']) server.endpoint.replies(path, DONE);
      server.endpoint.replies('/fails', BROKEN, DONE);
      for (const [stepId, path, out] of ends) {
        const child = await run.invoke({ stepId, path, headers: { 'upstash-retries': '0' } });
        await child.delivery(1);
        if (path === '/returns') await child.finish('{"x":1}');
        if (path === '/nothing') await child.finish();
        if (path === '/canceled') await child.cancel();
        const delivery = await run.lastDelivery(stepId + 1);
        expect({ ...delivery.step, out: JSON.parse(delivery.step.out) }).toEqual({ ...invokeStep(stepId), out });
        expect(delivery.headers).toMatchObject({
          'content-type': 'application/json',
          'upstash-workflow-runid': run.id,
          'upstash-workflow-url': run.url,
          'upstash-workflow-init': 'false',
          'upstash-workflow-sdk-version': '1',
        });
      }
      expect((await run.delivery(2)).step.out).toBe('{"body":"{\\"x\\":1}","isCanceled":false,"isFailed":false}');
    }),

    statement('W94', 'Logs show the invoking and the invoked run.', async (server) => {
      const run = await startAndDeliver(server);
      const child = await run.invoke();
      const createdAt = await run.createdAtMs();
      const invoker = { workflowRunId: run.id, workflowUrl: run.url, workflowRunCreatedAt: createdAt };
      expect((await child.shown()).invoker).toEqual(invoker);
      expect(await child.logged('RUN_STARTED')).toMatchObject({
        invokerWorkflowRunId: run.id,
        invokerWorkflowUrl: run.url,
        invokerWorkflowCreatedAt: createdAt,
      });
      expect(await run.logged('INVOKED')).not.toHaveProperty('stepInfo');
      expect((await run.shown()).steps.at(-1)).toMatchObject({
        type: 'sequential',
        steps: [{ stepType: 'Invoke', stepName: 'invoke-1', state: 'STEP_PROGRESS', invokedWorkflowRunId: child.id }],
      });
    }),

    statement('W95', 'If the parent has failed, the end of the child is only logged.', async (server) => {
      const run = await startAndDeliver(server, {
        headers: { 'upstash-retries': '0' },
        failureUrl: server.destination('/failure'),
      });
      const child = await run.invoke();
      server.endpoint.replies(run.path, BROKEN);
      await run.step(runStep(2));
      await run.logged('RUN_FAILED');
      await child.delivery(1);
      const invoked = async (): Promise<Json> => {
        const { steps } = await run.shown();
        return steps.flatMap((group: Json) => group.steps).find(({ stepType }: Json) => stepType === 'Invoke');
      };
      expect((await invoked()).state).toBe('STEP_PROGRESS');
      expect((await child.finish('"x"')).status).toBeLessThan(300);
      await eventually('the end of the child in the log', async () => (await invoked()).state === 'STEP_SUCCESS');
      await run.lastDelivery(2);
    }),

    statement(
      'W96',
      'Each of N plans and N results is delivered, and exactly one delivery has all.',
      async (server) => {
        const run = await startAndDeliver(server);
        const count = 5;
        const planned = await run.steps(plans(1, count));
        const planDeliveries = await Promise.all(Array.from({ length: count }, (_, index) => run.delivery(index + 2)));
        const plannedIds = planned.map(({ messageId }: Json) => messageId);
        expect(planDeliveries.map(({ messageId }) => messageId).sort()).toEqual([...plannedIds].sort());
        for (const delivery of planDeliveries) {
          expect(delivery.entries.at(-1)?.messageId).toBe(delivery.messageId);
          expect(delivery.entries).toHaveLength(plannedIds.indexOf(delivery.messageId) + 2);
          expect(delivery.step.targetStep).toBe(delivery.entries.length - 1);
        }
        await Promise.all(
          Array.from({ length: count }, (_, index) => run.step({ ...runStep(index + 1), concurrent: count })),
        );
        await run.lastDelivery(1 + 2 * count);
        const results = await Promise.all(Array.from({ length: count }, (_, index) => run.delivery(2 + count + index)));
        const lengths = results.map(({ entries }) => entries.length).sort((a, b) => a - b);
        expect(lengths).toEqual(Array.from({ length: count }, (_, index) => 2 + count + index));
      },
    ),
  ],
};
