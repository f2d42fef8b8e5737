/** How a run continues within one call (contract K 2, 3). */
import { expect } from 'vitest';
import { called, callOf, end, save, send, sendText, tokenOf } from '../support/checkpoints.ts';
import { type Section, statement } from '../support/statement.ts';
import { DONE, deliveryOf, plans, runStep } from '../support/workflow.ts';

const DELIVERED = ['CREATED', 'ACTIVE', 'DELIVERED'];

export const continuation: Section = {
  title: 'Continuation',
  statements: [
    statement('K1', 'A run of three steps takes one call, and its journal has four entries.', async (server) => {
      const { run, token, respond } = await called(server);
      const [one] = await save(server, [token], [{ step: runStep(1) }]);
      const [two] = await save(server, [one.token], [{ step: runStep(2) }]);
      const [three] = await save(server, [two.token], [{ step: runStep(3) }]);
      expect(await run.journal()).toEqual([
        { messageId: run.messageId, callType: 'step', text: '{"a":1}' },
        ...[one, two, three].map(({ messageId }, index) => {
          return { messageId, callType: 'step', text: JSON.stringify(runStep(index + 1)) };
        }),
      ]);
      respond(end(three.token, '"done"'));
      expect(await run.reached('RUN_SUCCESS')).toMatchObject({ workflowRunResponse: '"done"' });
      const events = await run.events();
      for (const messageId of [run.messageId, one.messageId, two.messageId, three.messageId]) {
        expect(events.filter(({ stepInfo }) => stepInfo?.messageId === messageId).map(({ state }) => state)).toEqual(
          DELIVERED,
        );
      }
      await run.lastDelivery(1);
    }),

    statement(
      'K2',
      'Deliveries of the journal have a token in the dialect of their message; other deliveries have none.',
      async (server) => {
        const { run, token, respond } = await called(server, { features: 'LazyFetch,InitialBody,WF_TriggerOnConfig' });
        expect(token).toMatch(/^[!-~]{1,512}$/);
        await run.call('/third');
        expect((await server.endpoint.arrival('/third')).headers).not.toHaveProperty('upstash-workflow-checkpoint');
        const result = await callOf(run, 2, respond);
        expect([result.delivery.headers['upstash-workflow-calltype'], result.token]).toEqual([
          'fromCallback',
          expect.stringMatching(/./),
        ]);
        expect(new Set([token, result.token]).size).toBe(2);
        const failed = await called(server, { headers: { 'upstash-retries': '0' } });
        failed.respond({ status: 500 });
        expect(tokenOf(await failed.run.delivery(2))).toBe('');
        await server.publish('/plain');
        expect((await server.endpoint.arrival('/plain')).headers).not.toHaveProperty('upstash-workflow-checkpoint');
        await server.post(`/v2/trigger/${server.destination('/rest')}`, undefined, {
          headers: { 'Waypost-Label': 'own' },
        });
        const { headers } = deliveryOf(await server.endpoint.arrival('/rest'));
        expect(headers).toHaveProperty('waypost-workflow-checkpoint');
        await server.post(`/v2/trigger/${server.destination('/asks')}`, undefined, {
          headers: { 'Upstash-Workflow-Unknown-Sdk': 'true' },
        });
        expect(tokenOf(deliveryOf(await server.endpoint.arrival('/asks')))).toBe('');
      },
    ),

    statement(
      'K3',
      'The token can read the journal of its run and cancel the run, and nothing else.',
      async (server) => {
        const { run, token, respond } = await called(server, { headers: { 'upstash-redact-fields': 'body' } });
        const other = await called(server);
        const [entry] = await server.get(`/v2/workflows/runs/${run.id}`, { token });
        expect(entry).toMatchObject({ messageId: run.messageId, body: Buffer.from('{"a":1}').toString('base64') });
        const asks: [status: number, method: string, target: string][] = [
          [404, 'GET', `/v2/workflows/runs/${other.run.id}`],
          [404, 'DELETE', `/v2/workflows/runs/${other.run.id}?cancel=true`],
          [401, 'DELETE', `/v2/workflows/runs/${run.id}?cancel=false`],
          [401, 'DELETE', '/v2/workflows/runs'],
          [401, 'GET', '/v2/logs'],
          [401, 'POST', `/v2/publish/${run.url}`],
          [401, 'POST', `/v2/notify/${run.id}/event`],
        ];
        for (const [status, method, target] of asks) {
          expect((await server.ask(method, target, { token })).status, `${method} ${target}`).toBe(status);
        }
        expect((await server.ask('DELETE', `/v2/workflows/runs/${run.id}?cancel=true`, { token })).status).toBe(200);
        expect((await send(server, [token], [{ step: runStep(1) }])).json).toMatchObject({ reason: 'ended' });
        respond(DONE);
        await run.reached('RUN_CANCELED');
      },
    ),

    statement(
      'K4',
      'Plans of a parallel group are claimed by the call, and each result is settled with the next one.',
      async (server) => {
        const { run, token, respond } = await called(server);
        const planned = await save(
          server,
          [token],
          plans(1, 3).map((step) => ({ step })),
        );
        expect(planned.map((entry) => typeof entry.token)).toEqual(['string', 'string', 'string']);
        const results = [];
        for (const [index, plan] of planned.entries()) {
          results.push(...(await save(server, [plan.token], [{ step: { ...runStep(index + 1), concurrent: 3 } }])));
        }
        const tokens = results.map((entry) => entry.token);
        const [four] = await save(server, tokens, [{ step: runStep(4) }]);
        respond(end(four.token));
        await run.reached('RUN_SUCCESS');
        expect((await run.states()).filter((state) => state === 'DELIVERED')).toHaveLength(8);
        await run.lastDelivery(1);
      },
    ),

    statement(
      'K5',
      'The settings of the trigger apply to a step that is delivered by itself later.',
      async (server) => {
        const flow = { 'upstash-flow-control-key': 'key', 'upstash-flow-control-value': 'parallelism=2' };
        const kept = { ...flow, 'upstash-label': 'labelled', 'upstash-retries': '1', 'upstash-retry-delay': '500' };
        const { run, token, respond } = await called(server, { user: { 'X-User': 'me' }, headers: kept });
        const [one] = await save(server, [token], [{ step: runStep(1) }]);
        respond(DONE); // the call gives up: the step is delivered with its journal
        const { delivery } = await callOf(run, 2, respond);
        expect(delivery.messageId).toBe(one.messageId);
        expect(delivery.texts).toEqual(['{"a":1}', JSON.stringify(runStep(1))]);
        expect(delivery.headers).toMatchObject({
          'content-type': 'application/json',
          'upstash-workflow-sdk-version': '1',
          'upstash-workflow-calltype': 'step',
          'upstash-workflow-init': 'false',
          'upstash-retried': '0',
          'upstash-label': 'labelled',
          'x-user': 'me',
        });
        expect((await server.get('/v2/flowControl/key')).inFlight ?? 1).toBe(1);
        respond({ status: 500 });
        const { time, nextDeliveryTime } = await run.logged('RETRY');
        expect(nextDeliveryTime - time).toBe(500);
      },
    ),

    statement(
      'K6',
      'A run without recorded trigger settings repeats those of the previous message.',
      async (server) => {
        const { run, token, respond } = await called(server, {
          features: 'LazyFetch,InitialBody',
          headers: { 'upstash-retries': '0', 'upstash-forward-x-own': 'mine', 'upstash-label': 'labelled' },
        });
        await save(server, [token], [{ step: runStep(1) }]);
        respond(DONE);
        const { delivery } = await callOf(run, 2, respond);
        expect(delivery.headers).toMatchObject({ 'x-own': 'mine', 'upstash-label': 'labelled' });
        respond({ status: 500 });
        await run.reached('RUN_FAILED');
      },
    ),

    statement('K7', 'The same checkpoint sent again gets the same response, and is saved once.', async (server) => {
      const { run, token, respond } = await called(server);
      const text = JSON.stringify({ done: [token], append: [{ step: runStep(1) }] });
      const [first, meanwhile] = await Promise.all([sendText(server, token, text), sendText(server, token, text)]);
      const again = await sendText(server, token, text);
      expect([first.status, meanwhile.text, again.text]).toEqual([200, first.text, first.text]);
      expect(await run.journal()).toHaveLength(2);
      const changed = JSON.stringify({ done: [token], append: [{ step: runStep(1, '"other"') }] });
      expect((await sendText(server, token, changed)).json).toMatchObject({ reason: 'lost' });
      const [one] = first.json.entries;
      const [two] = await save(server, [one.token], [{ step: runStep(2) }]);
      expect((await sendText(server, token, text)).json).toMatchObject({ reason: 'lost' });
      respond(end(two.token));
      await run.reached('RUN_SUCCESS');
    }),

    statement('K8', 'A step that is already in the journal keeps its result, and the call stops.', async (server) => {
      const { run, token, respond } = await called(server);
      // As an attempt before, which never answered, may have done.
      const messageId = await run.step(runStep(1, '"first"'));
      await run.delivery(2);
      expect(await save(server, [token], [{ step: runStep(1, '"second"') }])).toEqual([{ messageId }]);
      respond(DONE);
      expect((await run.journal()).map(({ text }) => text)).toEqual(['{"a":1}', JSON.stringify(runStep(1, '"first"'))]);
      await run.lastDelivery(2);
    }),
  ],
};
