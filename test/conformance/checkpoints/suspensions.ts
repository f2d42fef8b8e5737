/** Steps with which a call does not continue (contract K 3.6). */
import { expect } from 'vitest';
import { called, callOf, end, save } from '../support/checkpoints.ts';
import { type Section, statement } from '../support/statement.ts';
import type { Json } from '../support/subject.ts';
import { DONE, invokeStep, Run, runStep, waitStep } from '../support/workflow.ts';

export const suspensions: Section = {
  title: 'Suspending',
  statements: [
    statement(
      'K9',
      'A step that sleeps is not claimed by the call, and is delivered when it is due.',
      async (server) => {
        const inTime = [() => ({ delay: '100s' }), () => ({ notBefore: Math.ceil(server.clock.nowMs() / 1000) + 100 })];
        for (const at of inTime) {
          const { run, token, respond } = await called(server);
          const step = { ...runStep(1), stepType: 'SleepFor' };
          const [entry] = await save(server, [token], [{ step, ...at() }]);
          expect(entry).toEqual({ messageId: expect.stringMatching(/^msg_/) });
          respond(DONE);
          server.clock.advance(99_000);
          await run.lastDelivery(1);
          server.clock.advance(2_000);
          const second = await callOf(run, 2, respond);
          expect([second.delivery.messageId, second.delivery.step]).toEqual([entry.messageId, step]);
          respond(end(second.token));
          await run.reached('RUN_SUCCESS');
        }
      },
    ),

    statement('K10', 'A call to another service is sent, and its result is delivered by itself.', async (server) => {
      const { run, token, respond } = await called(server);
      const call = run.callItem(server.destination('/third'), { method: 'POST', body: 'question' });
      // Whatever run it names, it is of this one.
      call.headers['upstash-workflow-runid'] = 'wfr_other';
      const [entry] = await save(server, [token], [{ call }]);
      expect(entry).toEqual({ messageId: expect.stringMatching(/^msg_/) });
      respond(DONE);
      expect((await server.endpoint.arrival('/third')).body.toString()).toBe('question');
      const result = await callOf(run, 2, respond);
      expect(result.delivery.headers['upstash-workflow-calltype']).toBe('fromCallback');
      const [one] = await save(server, [result.token], [{ step: runStep(1) }]);
      expect((await run.journal()).map(({ callType }) => callType)).toEqual([
        'step',
        'toCallback',
        'fromCallback',
        'step',
      ]);
      respond(end(one.token));
      await run.reached('RUN_SUCCESS');
    }),

    statement('K11', 'A wait is registered, and the event or the deadline is delivered by itself.', async (server) => {
      const { run, token, respond } = await called(server);
      const wait = { eventId: 'event', timeout: '20s', step: waitStep(1) };
      expect(await save(server, [token], [{ wait }])).toEqual([{ messageId: expect.stringMatching(/^msg_/) }]);
      respond(DONE);
      const [waiter] = await server.get('/v2/waiters/event');
      expect(waiter).toMatchObject({ url: run.url, headers: { 'Upstash-Workflow-Runid': [run.id] } });
      await server.post('/v2/notify/event', { a: 1 });
      const notified = await callOf(run, 2, respond);
      expect(notified.delivery.step).toMatchObject({ stepId: 1, waitTimeout: false });
      expect(notified.delivery.headers).toMatchObject({ 'upstash-workflow-sdk-version': '1' });
      await save(server, [notified.token], [{ wait: { ...wait, step: waitStep(2) } }]);
      respond(DONE);
      server.clock.advance(20_000);
      const timedOut = await callOf(run, 3, respond);
      expect(timedOut.delivery.step).toMatchObject({ stepId: 2, waitTimeout: true });
      respond(end(timedOut.token));
      await run.reached('RUN_SUCCESS');
    }),

    statement('K12', 'An invocation starts a run, whose result is delivered by itself.', async (server) => {
      const { run, token, respond } = await called(server);
      const answerChild = server.endpoint.hold('/child');
      const invoke: Json = await run.invokeItem({ id: 'wfr_child', path: '/child' });
      invoke.body = invoke.body.replaceAll(run.id, 'wfr_other'); // whatever run it names, it is of this one
      const [entry] = await save(server, [token], [{ invoke }]);
      respond(DONE);
      const child = await callOf(
        new Run(server, { id: 'wfr_child', path: '/child', features: run.features }, entry.messageId),
        1,
        answerChild,
      );
      expect(child.delivery.messageId).toBe(entry.messageId);
      answerChild(end(child.token, '{"x":1}'));
      const result = await callOf(run, 2, respond);
      const out = '{"body":"{\\"x\\":1}","isCanceled":false,"isFailed":false}';
      expect(result.delivery.step).toEqual({ ...invokeStep(1), out });
      respond(end(result.token));
      await run.reached('RUN_SUCCESS');
    }),
  ],
};
