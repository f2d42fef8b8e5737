/** Runs whose code has changed (contract K 7). */
import { expect } from 'vitest';
import { called, callOf, end, save } from '../support/checkpoints.ts';
import type { Reply } from '../support/endpoint.ts';
import { type Section, statement } from '../support/statement.ts';
import { DONE, plans, replyOf, runStep, start } from '../support/workflow.ts';

const MINUTE = 60_000;
const SENTENCE = "This run has step 1 'run-1' (Run), and the code has 'other' (Run) there now.";

function changed(status = 409, name = 'Upstash-Workflow-Code-Changed'): Reply {
  return replyOf(status, JSON.stringify({ error: 'CodeChangedError', message: SENTENCE }), { [name]: 'true' });
}

export const codeChanges: Section = {
  title: 'Code that has changed',
  statements: [
    statement('K27', 'A run whose code has changed is parked, and never uses up a retry.', async (server) => {
      const { run, token, respond } = await called(server, { headers: { 'upstash-retries': '0' } });
      const [one] = await save(server, [token], [{ step: runStep(1) }]);
      respond(DONE);
      const waits = [1, 2, 4, 8, 16, 32, 60, 60].map((minutes) => minutes * MINUTE);
      for (const [index, waitMs] of waits.entries()) {
        const { delivery } = await callOf(run, index + 2, respond);
        expect([delivery.messageId, delivery.headers['upstash-retried']]).toEqual([one.messageId, '0']);
        respond(changed(409, index % 2 === 0 ? 'Upstash-Workflow-Code-Changed' : 'waypost-workflow-code-changed'));
        const { time, nextDeliveryTime, error, responseStatus } = await run.logged('STEP_PARKED', index + 1);
        expect([nextDeliveryTime - time, error, responseStatus]).toEqual([waitMs, SENTENCE, 409]);
        server.clock.advanceTo(nextDeliveryTime - 1);
        await run.lastDelivery(index + 2);
        server.clock.advanceTo(nextDeliveryTime);
      }
      const last = await callOf(run, waits.length + 2, respond);
      respond(end(last.token, '"fits again"'));
      expect((await run.reached('RUN_SUCCESS')).workflowRunResponse).toBe('"fits again"');
      const states = await run.states();
      for (const state of ['ERROR', 'RETRY', 'FAILED']) expect(states).not.toContain(state);
    }),

    statement('K28', 'While a run is parked, its log and `explain` say why and until when.', async (server) => {
      const { run, respond } = await called(server);
      respond(changed());
      const { nextDeliveryTime } = await run.logged('STEP_PARKED');
      expect((await run.shown()).steps.at(-1)).toMatchObject({
        type: 'next',
        steps: [{ state: 'STEP_PARKED', nextDeliveryTime, errors: [{ error: SENTENCE, status: 409 }] }],
      });
      const explained = await server.get(`/v2/workflows/runs/${run.id}/explain`);
      expect(explained).toMatchObject({ reason: 'parked', due: nextDeliveryTime, retried: 0 });
      expect(explained.explanation).toContain(SENTENCE);
      expect((await server.get('/v2/workflows/logs?state=STEP_PARKED')).runs).toHaveLength(1);
      server.clock.advanceTo(nextDeliveryTime);
      const again = await callOf(run, 2, respond);
      expect((await server.get(`/v2/workflows/runs/${run.id}/explain`)).reason).toBe('attempting');
      respond(end(again.token));
      await run.reached('RUN_SUCCESS');
      expect((await server.get('/v2/workflows/logs?state=STEP_PARKED')).runs).toEqual([]);
    }),

    statement('K29', 'Parked runs are delivered immediately on request.', async (server) => {
      const one = await called(server);
      const two = await called(server);
      const resume = (id: string) => server.ask('POST', `/v2/waypost/runs/${id}/resume`);
      expect((await resume('wfr_none')).status).toBe(404);
      expect((await resume(one.run.id)).json).toEqual({ resumed: 0 });
      for (const { run, respond } of [one, two]) {
        respond(changed());
        await run.logged('STEP_PARKED');
      }
      expect((await resume(one.run.id)).json).toEqual({ resumed: 1 });
      await callOf(one.run, 2, one.respond);
      await two.run.lastDelivery(1);
      one.respond(changed());
      const { time, nextDeliveryTime } = await one.run.logged('STEP_PARKED', 2);
      expect(nextDeliveryTime - time).toBe(MINUTE);
      expect(await server.post('/v2/waypost/runs/resume')).toEqual({ resumed: 2 });
      for (const [{ run, respond }, nth] of [[one, 3] as const, [two, 2] as const]) {
        respond(end((await callOf(run, nth, respond)).token));
        await run.reached('RUN_SUCCESS');
      }
      expect(await server.post('/v2/waypost/runs/resume')).toEqual({ resumed: 0 });
    }),

    statement('K30', 'Each message of the call is parked, and tried again automatically.', async (server) => {
      const { run, token, respond } = await called(server);
      const planned = await save(
        server,
        [token],
        plans(1, 2).map((step) => ({ step })),
      );
      respond(changed());
      await run.logged('STEP_PARKED', 2);
      const group = (await run.shown()).steps[1];
      expect(group.steps.map((step: { state: string }) => step.state)).toEqual(['STEP_PARKED', 'STEP_PARKED']);
      expect(await server.post('/v2/waypost/runs/resume')).toEqual({ resumed: 1 });
      const again = [await callOf(run, 2, respond), await callOf(run, 3, respond)];
      expect(new Set(again.map(({ delivery }) => delivery.messageId))).toEqual(
        new Set(planned.map(({ messageId }) => messageId)),
      );
    }),

    statement('K31', 'A parked run has no permit of its flow-control key, and can be cancelled.', async (server) => {
      const headers = { 'upstash-flow-control-key': 'key', 'upstash-flow-control-value': 'parallelism=1' };
      const { run, respond } = await called(server, { headers });
      const other = await start(server, { headers });
      respond(changed());
      await run.logged('STEP_PARKED');
      await other.delivery(1);
      expect((await run.cancel()).status).toBe(200);
      await run.reached('RUN_CANCELED');
      expect(await server.post('/v2/waypost/runs/resume')).toEqual({ resumed: 0 });
      server.clock.advance(60 * MINUTE);
      await run.lastDelivery(1);
    }),

    statement('K32', 'With another status, or for a delivery without a token, it is a failure.', async (server) => {
      const { run, respond } = await called(server, { headers: { 'upstash-retries': '0' } });
      respond(changed(500));
      await run.reached('RUN_FAILED');
      const path = server.endpoint.newPath();
      server.endpoint.replies(path, changed());
      const messageId = await server.publish(path, { 'upstash-retries': '0' });
      expect((await server.buried(messageId)).responseStatus).toBe(409);
    }),
  ],
};
