/** What the journal of a run records, and what deliveries contain of it (contract W 26.30 to 26.40, 4.4, 4.6, 8). */
import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import { signatureOf } from '../support/signature.ts';
import { type Section, statement } from '../support/statement.ts';
import type { Subject } from '../support/subject.ts';
import { DONE, OVER, plans, type Run, runStep, start, startAndDeliver } from '../support/workflow.ts';

const MIB = 1024 * 1024;
const ONE_AT_A_TIME = { 'upstash-flow-control-key': 'key', 'upstash-flow-control-value': 'parallelism=1' };

/** Runs that nothing can be appended to any more, by why. */
async function overRuns(server: Subject): Promise<Map<string, Run>> {
  const ended = await startAndDeliver(server);
  await ended.finish('"x"');
  const canceled = await startAndDeliver(server);
  await canceled.cancel();
  const unknown = await startAndDeliver(server, { id: 'wfr_other' });
  Object.assign(unknown, { id: 'wfr_unknown' });
  return new Map(Object.entries({ ended, canceled, unknown }));
}

export const journal: Section = {
  title: 'Journal',
  statements: [
    statement('W30', 'A step is delivered as the last entry of the journal, byte for byte.', async (server) => {
      const run = await startAndDeliver(server);
      // Spelled in a way that no serialiser would.
      const body = '{ "stepId":1.0, "out":null,"stepName":"gr\\u00fcn",\n"stepType":"Run","concurrent":1 }';
      const [{ messageId }] = await server.post('/v2/batch', [{ destination: run.url, headers: run.headers(), body }]);
      const delivery = await run.lastDelivery(2);
      expect(delivery.entries).toEqual([
        { messageId: run.messageId, callType: 'step', text: '{"a":1}' },
        { messageId, callType: 'step', text: body },
      ]);
      expect(delivery.messageId).toBe(messageId);
      expect(delivery.headers).toMatchObject({
        'content-type': 'application/json',
        'upstash-workflow-runid': run.id,
        'upstash-workflow-url': run.url,
        'upstash-workflow-createdat': String(await run.createdAtMs()),
        'upstash-workflow-init': 'false',
        'upstash-workflow-calltype': 'step',
        'upstash-workflow-sdk-version': '1',
        'upstash-retried': '0',
      });
    }),

    statement('W31', 'A step is in the journal before the delivery that published it is answered.', async (server) => {
      const answer = server.endpoint.hold('/wf');
      const run = await startAndDeliver(server, { path: '/wf' });
      const messageId = await run.step(runStep(1));
      expect((await run.journal()).map((entry) => entry.messageId)).toEqual([run.messageId, messageId]);
      answer(DONE);
    }),

    statement('W32', 'Each step is delivered with the entries before it and none after it.', async (server) => {
      const answer = server.endpoint.hold('/wf');
      const run = await startAndDeliver(server, { path: '/wf', headers: ONE_AT_A_TIME });
      const first = await run.step(runStep(1));
      const second = await run.step(runStep(2));
      answer(DONE); // until now the endpoint was busy, and the journal has all three
      const one = await run.delivery(2);
      expect([one.entries.length, one.messageId, one.entries.at(-1)?.messageId]).toEqual([2, first, first]);
      answer(DONE);
      const two = await run.delivery(3);
      expect([two.entries.length, two.messageId, two.entries.at(-1)?.messageId]).toEqual([3, second, second]);
    }),

    statement('W33', 'Publishing into a finished or unknown run gets 400 with the known text.', async (server) => {
      for (const [why, run] of await overRuns(server)) {
        const before = server.endpoint.to(run.path).length;
        const [item] = run.stepItems([runStep(1)]);
        const answers = [
          await server.ask('POST', '/v2/batch', { body: JSON.stringify([item]) }),
          await server.ask('POST', `/v2/publish/${run.url}`, item),
          await run.wait('event'),
        ];
        for (const { status, json } of answers) {
          expect(status, why).toBe(400);
          expect(json.error, why).toContain(OVER);
        }
        await server.quiet();
        expect(server.endpoint.to(run.path), why).toHaveLength(before);
      }
      const noId = { 'Upstash-Workflow-Init': 'false' };
      expect((await server.ask('POST', `/v2/publish/${server.destination('/a')}`, { headers: noId })).status).toBe(400);
    }),

    statement('W34', 'A batch for a finished run is rejected as a whole.', async (server) => {
      const active = await startAndDeliver(server);
      for (const [why, run] of await overRuns(server)) {
        const items = [...active.stepItems([runStep(1)]), ...run.stepItems(plans(1, 3))];
        const { status, json } = await server.ask('POST', '/v2/batch', { body: JSON.stringify(items) });
        expect(status, why).toBe(400);
        expect(json.error, why).toContain(OVER);
      }
      expect(await active.journal()).toHaveLength(1);
      await active.lastDelivery(1);
    }),

    statement('W35', 'The same step published again adds no entry.', async (server) => {
      const run = await startAndDeliver(server);
      const messageId = await run.step(runStep(1));
      await run.delivery(2);
      const again = { 'upstash-telemetry-runtime': 'node@99', 'upstash-forward-upstash-retried': '1' };
      const [answer] = await run.steps([runStep(1)], again);
      expect(answer).toMatchObject({ messageId, deduplicated: true });
      // An endpoint that crashed and executed the step again may have another result: the first one stays.
      const [differing] = await run.steps([runStep(1, '"other"')]);
      expect(differing).toMatchObject({ messageId, deduplicated: true });
      expect(await run.journal()).toHaveLength(2);
      await run.lastDelivery(2);
    }),

    statement('W36', 'A publish for an earlier run of the id does not affect the active one.', async (server) => {
      const run = await startAndDeliver(server);
      const createdAt = await run.createdAtMs();
      const foreign = { 'upstash-workflow-createdat': String(createdAt - 1) };
      const body = JSON.stringify(run.stepItems([runStep(1)], foreign));
      const { status, json } = await server.ask('POST', '/v2/batch', { body });
      expect([status, json.error]).toEqual([400, expect.stringContaining(OVER)]);
      const ending = `/v2/workflows/runs/${run.id}?cancel=false`;
      expect((await server.ask('DELETE', ending, { headers: foreign })).status).toBeLessThan(300);
      expect(await run.journal()).toHaveLength(1);
      await run.step(runStep(1), { 'upstash-workflow-createdat': String(createdAt) });
      await run.lastDelivery(2);
    }),

    statement('W37', 'A large journal is left out for the library to fetch, if it can.', async (server) => {
      const payload = JSON.stringify('x'.repeat(5 * MIB));
      const run = await start(server, { payload });
      const { body, headers } = await run.delivery(1);
      expect([body.length, headers['content-length']]).toEqual([0, '0']);
      const signature = signatureOf(await run.delivery(1));
      expect(signature.isSignedWith((await server.get('/v2/keys')).current)).toBe(true);
      expect(signature.claims.body).toBe(`${createHash('sha256').digest('base64url')}=`);
      const [entry] = await run.journal();
      expect(entry).toMatchObject({ messageId: run.messageId, callType: 'step' });
      expect(entry?.text === payload).toBe(true);
    }),

    statement('W38', 'A library that cannot fetch it gets all of it in the delivery.', async (server) => {
      const payload = 'x'.repeat(5 * MIB);
      const run = await start(server, { payload, features: 'InitialBody' });
      expect((await run.delivery(1)).texts[0] === payload).toBe(true);
    }),

    statement('W39', 'The journal lists calls and their results with their call types.', async (server) => {
      const run = await startAndDeliver(server);
      await run.call('/third', { method: 'POST', body: 'question' });
      const { messageId, body } = await run.delivery(2);
      const [, call, result] = await run.journal();
      expect(call).toMatchObject({ callType: 'toCallback', text: 'question' });
      expect(result).toEqual({ messageId, callType: 'fromCallback', text: body.toString() });
      await run.step(runStep(1));
      expect((await run.delivery(3)).entries.map(({ callType }) => callType)).toEqual([
        'step',
        'toCallback',
        'fromCallback',
        'step',
      ]);
    }),

    statement('W40', 'The journal of a finished or unknown run gets 404.', async (server) => {
      for (const [why, run] of await overRuns(server)) {
        expect((await server.ask('GET', `/v2/workflows/runs/${run.id}`)).status, why).toBe(404);
      }
    }),
  ],
};
