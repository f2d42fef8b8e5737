/** Retries and flow control of a single step in place of the run's (contract W 26.107 to 26.110, 6.6). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';
import type { Json } from '../support/subject.ts';
import { BROKEN, DONE, FEATURES, type Headers, type Run, runStep, startAndDeliver } from '../support/workflow.ts';

const FOR_STEP = { 'upstash-feature-set': `${FEATURES},WF_StepConfig` };
const TRIGGER = {
  'upstash-retries': '1',
  'upstash-retry-delay': '2000',
  'upstash-flow-control-key': 'run',
  'upstash-flow-control-value': 'parallelism=9, rate=99',
};

/** As they arrive. */
const OF_TRIGGER = {
  'upstash-max-retries': '1',
  'upstash-retry-delay': '2000',
  'upstash-flow-control-key': 'run',
  'upstash-flow-control-value': 'parallelism=9,rate=99,period=1',
};

/** The publish that asks for a delivery in which step `targetStep` is to run, as the library makes it. */
function requestFor(run: Run, targetStep: number): { headers: Headers; body: string } {
  const callType = { 'upstash-workflow-calltype': 'stepConfig', 'upstash-content-based-deduplication': 'true' };
  return {
    headers: { ...run.headers(), ...FOR_STEP, ...callType, 'upstash-retries': '0' },
    body: JSON.stringify({ targetStep, invokeCount: 0 }),
  };
}

function askFor(run: Run, targetStep: number): Promise<Json> {
  return run.server.post(`/v2/publish/${run.url}`, undefined, requestFor(run, targetStep));
}

export const stepSettings: Section = {
  title: 'Step settings',
  statements: [
    statement(
      'W107',
      'Settings of a message for a step apply to the deliveries of that step; everything else follows the trigger.',
      async (server) => {
        const run = await startAndDeliver(server, { headers: TRIGGER, failureUrl: server.destination('/failure') });
        server.endpoint.replies(run.path, DONE, BROKEN, DONE);
        const sentAtMs = server.clock.nowMs();
        await run.step(runStep(1), { ...FOR_STEP, 'upstash-retry-delay': '5000' });
        expect((await run.logged('RETRY')).nextDeliveryTime).toBe(sentAtMs + 5000);
        server.clock.advance(5000);
        await run.lastDelivery(3);

        server.endpoint.replies(run.path, BROKEN);
        await run.step(runStep(2), { ...FOR_STEP, 'upstash-retries': '0' });
        await run.logged('RUN_FAILED');
        const { headers } = await run.lastDelivery(4);
        expect(headers).toMatchObject({ ...OF_TRIGGER, 'upstash-max-retries': '0' });
      },
    ),

    statement(
      'W108',
      'A delivery carries the settings that apply to it, and is marked if a message changed settings for the step.',
      async (server) => {
        const run = await startAndDeliver(server, { headers: TRIGGER });
        const marked = { 'upstash-workflow-step-config': 'true' };
        expect((await run.delivery(1)).headers).toMatchObject(OF_TRIGGER);
        await run.step(runStep(1), {
          ...FOR_STEP,
          'upstash-flow-control-key': 'step',
          'upstash-flow-control-value': 'rate=5, period=2m',
        });
        const { headers } = await run.delivery(2);
        const flowControl = { 'upstash-flow-control-key': 'step', 'upstash-flow-control-value': 'rate=5,period=120' };
        expect(headers).toMatchObject({ ...OF_TRIGGER, ...flowControl, ...marked });
        await run.steps([{ stepId: 0, stepName: 'p', stepType: 'Run', concurrent: 2, targetStep: 2 }], {
          ...FOR_STEP,
          'upstash-retries': '0',
        });
        const plan = (await run.delivery(3)).headers;
        expect(plan).toMatchObject({ ...OF_TRIGGER, 'upstash-max-retries': '0', 'upstash-retries': '0', ...marked });
        await run.step(runStep(2), { 'upstash-retries': '0' });
        const ordinary = (await run.delivery(4)).headers;
        expect(ordinary).toMatchObject(OF_TRIGGER);
        for (const message of [await run.delivery(1), { headers: ordinary }]) {
          expect(message.headers).not.toHaveProperty('upstash-workflow-step-config');
        }
      },
    ),

    statement(
      'W109',
      'A message that only sets options of a step is delivered with the journal, once, and is not a step; none follows another immediately.',
      async (server) => {
        const answer = server.endpoint.hold('/wf');
        const run = await startAndDeliver(server, { path: '/wf' });
        const { messageId } = await askFor(run, 1);
        expect(await askFor(run, 1)).toMatchObject({ messageId, deduplicated: true });
        const another = await server.ask('POST', `/v2/publish/${run.url}`, requestFor(run, 2));
        expect(another.status).toBe(400);
        answer(DONE);
        const delivery = await run.lastDelivery(2);
        expect(delivery.messageId).toBe(messageId);
        expect(delivery.headers).toMatchObject({
          'upstash-workflow-calltype': 'stepConfig',
          'upstash-workflow-step-config': 'true',
          'upstash-max-retries': '0',
        });
        expect(delivery.entries.map(({ callType }) => callType)).toEqual(['step', 'stepConfig']);
        await run.step(runStep(1));
        answer(DONE);
        await run.lastDelivery(3);
        expect(await askFor(run, 1)).toMatchObject({ messageId, deduplicated: true });
        await run.finish();
        answer(DONE);
        const { steps } = await run.reached('RUN_SUCCESS');
        const names = steps.flatMap((group: { steps: { stepName: string }[] }) =>
          group.steps.map((one) => one.stepName),
        );
        expect(names).toEqual(['init', 'run-1']);
      },
    ),

    statement(
      'W110',
      'A run fails with an explanation if the endpoint responds with success to a delivery that only sets options of a step, and does not advance the run.',
      async (server) => {
        const run = await startAndDeliver(server, { failureUrl: server.destination('/failure') });
        await askFor(run, 1);
        const { steps } = await run.reached('RUN_FAILED');
        expect(steps.at(-1)).toMatchObject({ type: 'next', steps: [{ state: 'STEP_FAILED' }] });
        expect(steps.at(-1).steps[0].errors[0].error).toMatch(/lacks the result of the step$/);
        await server.endpoint.arrival('/failure');
        await run.lastDelivery(2);
      },
    ),
  ],
};
