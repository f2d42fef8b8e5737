/** The configuration that the trigger sets for the whole run (contract W 26.41 to 26.48, 7). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';
import {
  BROKEN,
  DONE,
  OLD_FEATURES,
  prefixed,
  runStep,
  start,
  startAndDeliver,
  waitStep,
} from '../support/workflow.ts';

const USER = { 'X-User': 'u', 'X-Tenant': 't' };
/** As they arrive. */
const DELIVERED = { 'x-user': 'u', 'x-tenant': 't' };

export const configuration: Section = {
  title: 'Trigger configuration',
  statements: [
    statement('W41', "A step without user headers is delivered with the trigger's.", async (server) => {
      const run = await startAndDeliver(server, { user: USER });
      await run.step(runStep(1), { 'upstash-forward-x-own': 'own', 'upstash-forward-x-user': 'other' });
      expect((await run.delivery(2)).headers).toMatchObject({ ...DELIVERED, 'x-own': 'own' });
    }),

    statement(
      'W42',
      'The same applies to messages that the server creates: results of waits, invocations and calls, and the failure callback.',
      async (server) => {
        const run = await startAndDeliver(server, {
          user: USER,
          headers: { 'upstash-retries': '0' },
          failureUrl: server.destination('/failure'),
        });
        await run.wait('event');
        await server.post('/v2/notify/event');
        expect((await run.delivery(2)).headers).toMatchObject(DELIVERED);
        await run.wait('event', { step: waitStep(2), timeout: '1s' });
        server.clock.advance(1000);
        expect((await run.delivery(3)).headers).toMatchObject(DELIVERED);
        const child = await run.invoke({ stepId: 3 });
        expect((await child.delivery(1)).headers).not.toHaveProperty('x-user');
        await child.finish();
        expect((await run.delivery(4)).headers).toMatchObject(DELIVERED);
        await run.call('/third');
        server.endpoint.replies(run.path, BROKEN);
        expect((await run.delivery(5)).headers).toMatchObject(DELIVERED);
        expect((await server.endpoint.arrival('/failure')).headers).toMatchObject(DELIVERED);
      },
    ),

    statement('W43', 'The target of a call receives no headers of the run.', async (server) => {
      const run = await startAndDeliver(server, {
        user: USER,
        headers: { 'upstash-label': 'l', 'upstash-forward-upstash-label': 'l' },
      });
      await run.call('/third', { headers: { 'upstash-forward-x-call': 'call' } });
      const { headers } = await server.endpoint.arrival('/third');
      expect(headers['x-call']).toBe('call');
      for (const name of Object.keys(headers)) expect(name).not.toMatch(/^(upstash-(workflow|label)|x-user|x-tenant)/);
      // What the user writes themself is sent, also when it looks like a mark of ours.
      const marks = { 'upstash-workflow-is-failure': 'true', 'upstash-workflow-callback': 'true' };
      await run.call('/forged', { stepId: 2, headers: prefixed('upstash-forward-', marks) });
      expect((await server.endpoint.arrival('/forged')).headers).toMatchObject(marks);
    }),

    statement('W44', 'The result of a call has no version, although the trigger forwarded one.', async (server) => {
      const run = await startAndDeliver(server, { user: USER });
      await run.call('/third');
      const { headers } = await run.delivery(2);
      expect(headers['upstash-workflow-callback']).toBe('true');
      expect(headers).not.toHaveProperty('upstash-workflow-sdk-version');
    }),

    statement('W45', "The trigger's retries apply to a later step without retries of its own.", async (server) => {
      const none = await startAndDeliver(server, { headers: { 'upstash-retries': '0' } });
      server.endpoint.replies(none.path, BROKEN);
      await none.step(runStep(1));
      await none.logged('RUN_FAILED');
      await none.delivery(2);

      const headers = { 'upstash-retries': '1', 'upstash-retry-delay': '2000' };
      const one = await startAndDeliver(server, { headers });
      server.endpoint.replies(one.path, BROKEN);
      const sentAtMs = server.clock.nowMs();
      await one.step(runStep(1), { 'upstash-retries': '9', 'upstash-retry-delay': '5000' });
      expect((await one.logged('RETRY')).nextDeliveryTime).toBe(sentAtMs + 2000);
      server.clock.advance(2000);
      await one.logged('RUN_FAILED');
    }),

    statement('W46', 'Without the flag, the headers of the step itself apply.', async (server) => {
      const run = await startAndDeliver(server, {
        features: OLD_FEATURES,
        user: USER,
        headers: { 'upstash-retries': '0' },
      });
      server.endpoint.replies(run.path, BROKEN);
      const own = { 'upstash-retries': '1', 'upstash-retry-delay': '1000', 'upstash-forward-x-own': 'own' };
      await run.step(runStep(1), own);
      const { headers } = await run.delivery(2);
      expect(headers['x-own']).toBe('own');
      expect(headers).not.toHaveProperty('x-user');
      await run.logged('RETRY');
      server.clock.advance(1000);
      await run.logged('RUN_FAILED');
      await run.delivery(3);
    }),

    statement('W47', "A run's labels are in each of its deliveries.", async (server) => {
      const run = await startAndDeliver(server, {
        headers: { 'upstash-label': 'a,b', 'upstash-forward-upstash-label': 'a,b', 'upstash-retries': '0' },
      });
      await run.step(runStep(1));
      await run.call('/third');
      for (const nth of [1, 2, 3]) expect((await run.delivery(nth)).headers['upstash-label'], `${nth}`).toBe('a,b');
    }),

    statement(
      'W48',
      "The trigger's flow control applies to all deliveries of all runs with the key.",
      async (server) => {
        const answer = server.endpoint.hold('/wf');
        const headers = { 'upstash-flow-control-key': 'key', 'upstash-flow-control-value': 'parallelism=1' };
        const [a, b] = [
          await start(server, { id: 'wfr_a', path: '/wf', headers }),
          await start(server, { id: 'wfr_b', path: '/wf', headers }),
        ];
        const idOf = async (nth: number) => (await a.delivery(nth)).headers['upstash-workflow-runid'];
        expect(await idOf(1)).toBe('wfr_a');
        await a.step(runStep(1));
        await a.lastDelivery(1);
        answer(DONE);
        const second = await idOf(2);
        await a.lastDelivery(2);
        answer(DONE);
        const third = await idOf(3);
        expect([second, third].sort()).toEqual(['wfr_a', 'wfr_b']);
        await b.step(runStep(1));
        await b.lastDelivery(3);
        answer(DONE);
        expect(await idOf(4)).toBe('wfr_b');
        // What sleeps or waits takes no place.
        await a.wait('event');
        answer(DONE);
        await a.step(runStep(2), { 'upstash-delay': '1h' });
        await b.step(runStep(2));
        expect(await idOf(5)).toBe('wfr_b');
        answer(DONE);
      },
    ),
  ],
};
