/** How a call ends, and the outcome of the messages that it holds (contract K 5). */
import { expect } from 'vitest';
import { called, callOf, end, save } from '../support/checkpoints.ts';
import { type Section, statement } from '../support/statement.ts';
import { DONE, FEATURES, fromBase64, plans, replyOf, runStep, start } from '../support/workflow.ts';

export const ends: Section = {
  title: 'Ends',
  statements: [
    statement('K21', 'A response with a token of the call ends the run with its body.', async (server) => {
      const results: [body: string, shown: string | undefined][] = [
        ['{"grün":[1, 2]}', '{"grün":[1, 2]}'],
        ['', undefined],
      ];
      for (const [body, shown] of results) {
        const { run, token, respond } = await called(server);
        respond(replyOf(201, body, { 'Waypost-Workflow-End': token }));
        expect((await run.reached('RUN_SUCCESS')).workflowRunResponse).toBe(shown);
        expect(await run.states()).toEqual(expect.arrayContaining(['DELIVERED', 'RUN_SUCCESS']));
        await run.lastDelivery(1);
      }
    }),

    statement(
      'K22',
      'Without one, the delivered message counts as delivered, and the other messages of the call are sent again.',
      async (server) => {
        const { run, token, respond } = await called(server);
        const planned = await save(
          server,
          [token],
          plans(1, 2).map((step) => ({ step })),
        );
        respond(DONE);
        const again = [await callOf(run, 2, respond), await callOf(run, 3, respond)];
        expect(new Set(again.map(({ delivery }) => delivery.messageId))).toEqual(
          new Set(planned.map(({ messageId }) => messageId)),
        );
        expect(again.map(({ delivery }) => delivery.headers['upstash-retried'])).toEqual(['0', '0']);
        expect(again.map((each) => each.token)).not.toEqual(planned.map((each) => each.token));
        const plain = await start(server);
        await plain.lastDelivery(1);
        expect(await plain.states()).toContain('DELIVERED');
      },
    ),

    statement(
      'K23',
      'Any other response is a failed attempt of each message of the call, as if each had been delivered.',
      async (server) => {
        const { run, token, respond } = await called(server, { headers: { 'upstash-retries': '1' } });
        const [one] = await save(server, [token], [{ step: runStep(1) }]);
        respond({ status: 500, body: 'broken' });
        const { time, nextDeliveryTime } = await run.logged('RETRY');
        expect(nextDeliveryTime).toBeGreaterThan(time);
        server.clock.advanceTo(nextDeliveryTime);
        const second = await callOf(run, 2, respond);
        expect([second.delivery.messageId, second.delivery.headers['upstash-retried']]).toEqual([one.messageId, '1']);
        // The retries of a step are its own.
        const [two] = await save(server, [second.token], [{ step: runStep(2) }]);
        respond({ status: 500, body: 'broken' });
        server.clock.advanceTo((await run.logged('RETRY', 2)).nextDeliveryTime);
        const third = await callOf(run, 3, respond);
        expect([third.delivery.messageId, third.delivery.headers['upstash-retried']]).toEqual([two.messageId, '1']);
        expect(third.delivery.entries).toHaveLength(3);
        respond({ status: 500, body: 'the last' });
        expect(await run.buried()).toMatchObject({ messageId: two.messageId, responseBody: 'the last' });
        const features = FEATURES.replace('InitialBody,', ''); // the failure callback shows what was delivered
        const failureUrl = server.destination('/failure');
        const other = await called(server, { features, failureUrl, headers: { 'upstash-retries': '0' } });
        await save(server, [other.token], [{ step: runStep(1) }]);
        other.respond({ status: 500 });
        const { sourceBody } = JSON.parse((await server.endpoint.arrival('/failure')).body.toString());
        const delivered = JSON.parse(fromBase64(sourceBody)).map(({ body }: { body: string }) => fromBase64(body));
        expect(delivered).toEqual(['{"a":1}', JSON.stringify(runStep(1))]);
      },
    ),

    statement('K24', 'A result with an unknown token is a failed attempt.', async (server) => {
      const { run, token, respond } = await called(server, { headers: { 'upstash-retries': '0' } });
      await save(server, [token], [{ step: runStep(1) }]);
      respond(end(token, '"early"'));
      await run.reached('RUN_FAILED');
      expect((await run.buried()).responseBody).toContain('is not of this call');
    }),

    statement('K25', 'A response to the first message identifies the library, or is an end.', async (server) => {
      const ended = await called(server);
      ended.respond({ status: 200, body: '"done"', headers: { 'Upstash-Workflow-End': ended.token } });
      await ended.run.reached('RUN_SUCCESS');
      const { run, respond } = await called(server);
      respond({ status: 200, body: '"done"' });
      await run.reached('RUN_FAILED');
    }),

    statement(
      'K26',
      'A run whose call has settled all its messages makes no progress until it is cancelled.',
      async (server) => {
        const { run, token, respond } = await called(server);
        expect(await save(server, [token])).toEqual([]);
        respond(DONE);
        await run.logged('DELIVERED');
        server.clock.advance(86_400_000);
        await run.lastDelivery(1);
        expect((await run.journal()).length).toBe(1);
        await run.cancel();
        await run.reached('RUN_CANCELED');
      },
    ),
  ],
};
