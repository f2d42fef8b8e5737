/** Which checkpoints are refused, and what a refusal leaves unchanged (contract K 4). */
import { expect } from 'vitest';
import { called, callOf, end, save, send, sendText } from '../support/checkpoints.ts';
import { type Section, statement } from '../support/statement.ts';
import type { Json } from '../support/subject.ts';
import { DONE, runStep, waitStep } from '../support/workflow.ts';

export const refusals: Section = {
  title: 'Refusals',
  statements: [
    statement('K17', 'A checkpoint without a token of a delivery gets 401.', async (server) => {
      const { token } = await called(server);
      const body = JSON.stringify({ done: [token] });
      const altered = `${token.slice(0, -2)}${token.endsWith('AA') ? 'BB' : 'AA'}`;
      for (const other of [server.token, altered, 'nonsense', null]) {
        expect((await server.ask('POST', '/v2/waypost/checkpoints', { token: other, body })).status).toBe(401);
      }
      // Keys are replaced in two steps; what was signed with the one before is good for one of them.
      await server.post('/v2/keys/rotate');
      expect((await sendText(server, token, body)).status).toBe(401);
    }),

    statement('K18', 'A message that was settled, or whose call is over, is lost.', async (server) => {
      const { run, token, respond } = await called(server);
      const [one] = await save(server, [token], [{ step: runStep(1) }]);
      const [two] = await save(server, [one.token], [{ step: runStep(2) }]);
      respond(DONE); // gives up
      await callOf(run, 2, respond);
      for (const done of [token, one.token, two.token]) {
        const { status, json } = await send(server, [done], [{ step: runStep(3) }]);
        expect([status, json.reason]).toEqual([409, 'lost']);
      }
      expect(await run.journal()).toHaveLength(3);
    }),

    statement(
      'K19',
      'The endpoint of a cancelled run is informed by the response to its next checkpoint.',
      async (server) => {
        const { run, token, respond } = await called(server);
        const [one] = await save(server, [token], [{ step: runStep(1) }]);
        await run.cancel();
        const { status, json } = await send(server, [one.token], [{ step: runStep(2) }]);
        expect([status, json.reason]).toEqual([409, 'ended']);
        respond(DONE);
        await run.logged('CANCELED');
        expect((await run.events()).filter(({ state }) => state === 'CREATED')).toHaveLength(2);
        await run.lastDelivery(1);
      },
    ),

    statement(
      'K20',
      'An invalid checkpoint gets 412 or 422 that names its element, and saves nothing: the call continues.',
      async (server) => {
        const { run, token, respond } = await called(server);
        const good = { step: runStep(1) };
        const large = { step: runStep(2, 'x'.repeat(3_000)) };
        const deep = `{"done":["${token}"],"append":[{"step":${'['.repeat(9_000)}${']'.repeat(9_000)}}]}`;
        const mistakes: [status: number, element: Json][] = [
          [422, {}],
          [422, { ...good, wait: { eventId: 'e', step: waitStep(1) } }],
          [422, { step: 'text' }],
          [422, { step: { stepName: 'no id' } }],
          [422, { ...good, delay: 'soon' }],
          [412, { ...good, delay: '1000d' }],
          [412, { step: { ...runStep(1), sleepUntil: server.clock.nowMs() / 1000 + 1_000 * 86_400 }, notBefore: 0 }],
          [422, { wait: { eventId: 'a:b', step: waitStep(1) } }],
          [422, { wait: { eventId: 'e', timeout: 'soon', step: waitStep(1) } }],
          [422, { call: { destination: server.destination('/third') } }],
          [422, { invoke: run.callItem(server.destination('/third')) }],
        ];
        for (const [status, element] of mistakes) {
          const refused = await send(server, [token], [good, element]);
          expect([refused.status, refused.json.error], JSON.stringify(element)).toEqual([
            status,
            expect.stringContaining('(append[1])'),
          ]);
        }
        expect((await send(server, [token], [good, large])).json.error).toContain('maxJournalSize');
        const many: [body: Json, status: number, error: string][] = [
          [{ done: [token], append: [good, good, good] }, 412, 'quota maxAppend exceeded, current limit: 2'],
          [{ done: [token, 'b', 'c'] }, 422, 'done must have 1 to 2 tokens'],
          [{ failed: [{}, {}, {}] }, 422, 'failed must be an array of at most 2 elements'],
        ];
        for (const [body, status, error] of many) {
          const refused = await sendText(server, token, JSON.stringify(body));
          expect([refused.status, refused.json.error]).toEqual([status, expect.stringContaining(error)]);
        }
        // Longer ones are parsed in another thread.
        const long = ' '.repeat(300_000);
        const wrong = [
          deep,
          `${deep}${long}`,
          `no JSON${long}`,
          '[]',
          'no JSON',
          '{}',
          '{"done":[]}',
          `{"done":["${token}","${token}"]}`,
          '{"done":["other"]}',
        ];
        for (const body of wrong) expect((await sendText(server, token, body)).status, body.slice(0, 200)).toBe(422);
        const other = await called(server);
        expect((await send(server, [token, other.token], [good])).status).toBe(422);
        expect(await run.journal()).toHaveLength(1);
        const [one] = await save(server, [token], [good]);
        respond(end(one.token));
        await run.reached('RUN_SUCCESS');
      },
      { flags: ['--journal-bytes-max', '2000', '--delay-max', '365d', '--batch-items-max', '2'] },
    ),
  ],
};
