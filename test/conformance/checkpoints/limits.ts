/** The limits of a call that continues (contract K 3.6, 3.8). */
import { expect } from 'vitest';
import { called, callOf, end, save } from '../support/checkpoints.ts';
import { type Section, statement } from '../support/statement.ts';
import { DONE, runStep, start } from '../support/workflow.ts';

function flow(value: string): Record<string, string> {
  return { 'upstash-flow-control-key': 'key', 'upstash-flow-control-value': value };
}

export const limits: Section = {
  title: 'Limits',
  statements: [
    statement(
      'K13',
      'Each step of the call counts towards the rate of its key; when the rate is used up, the step waits.',
      async (server) => {
        const { run, token, respond } = await called(server, { headers: flow('rate=2, period=1m') });
        const [one] = await save(server, [token], [{ step: runStep(1) }]);
        const [two] = await save(server, [one.token], [{ step: runStep(2) }]);
        expect([typeof one.token, two]).toEqual(['string', { messageId: expect.stringMatching(/^msg_/) }]);
        respond(DONE);
        server.clock.advance(59_000);
        await run.lastDelivery(1);
        server.clock.advance(1_000);
        expect((await callOf(run, 2, respond)).delivery.messageId).toBe(two.messageId);
      },
    ),

    statement(
      'K14',
      'A key with parallelism 1 lets a call continue, unless another message waits for the key.',
      async (server) => {
        const { run, token, respond } = await called(server, { headers: flow('parallelism=1') });
        const [one] = await save(server, [token], [{ step: runStep(1) }]);
        expect(one).toHaveProperty('token');
        const other = await start(server, { path: '/other', headers: flow('parallelism=1') });
        const [two] = await save(server, [one.token], [{ step: runStep(2) }]);
        expect(two).not.toHaveProperty('token');
        await other.delivery(1);
        respond(DONE);
        const second = await callOf(run, 2, respond);
        expect(second.delivery.messageId).toBe(two.messageId);
        respond(end(second.token));
        await run.reached('RUN_SUCCESS');
      },
    ),

    statement(
      'K15',
      'A worker without free slots lets its calls continue.',
      async (server) => {
        const { run, token, respond } = await called(server);
        for (let others = server.workers - 1; others > 0; others -= 1) await called(server);
        const waiting = await start(server);
        const [one] = await save(server, [token], [{ step: runStep(1) }]);
        const [two] = await save(server, [one.token], [{ step: runStep(2) }]);
        expect(server.endpoint.to(waiting.path)).toEqual([]);
        respond(end(two.token));
        await run.reached('RUN_SUCCESS');
        await waiting.delivery(1);
      },
      { flags: ['--in-flight-max', '1'] },
    ),

    statement('K16', 'The timeout of the call restarts with each checkpoint.', async (server) => {
      const { run, token } = await called(server, { headers: { 'upstash-timeout': '10s', 'upstash-retries': '0' } });
      server.clock.advance(9_000);
      const [one] = await save(server, [token], [{ step: runStep(1) }]);
      server.clock.advance(9_000);
      const [two] = await save(server, [one.token], [{ step: runStep(2) }]);
      server.clock.advance(10_000);
      await run.reached('RUN_FAILED');
      expect((await run.buried()).messageId).toBe(two.messageId);
    }),
  ],
};
