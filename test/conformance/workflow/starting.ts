/** How a run starts (contract W 26.1 to 26.21, 4.5, 5.2, 9). */
import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import { signatureOf } from '../support/signature.ts';
import { type Section, statement } from '../support/statement.ts';
import type { Json, Subject } from '../support/subject.ts';
import { base64, DONE, deliveryOf, prefixed, start, startAndDeliver, triggerItem } from '../support/workflow.ts';

function initHeaders(server: Subject, id: string, path: string): Record<string, string> {
  return {
    'Upstash-Workflow-Init': 'true',
    'Upstash-Workflow-RunId': id,
    'Upstash-Workflow-Url': server.destination(path),
  };
}

/** Headers by which the library knows what a delivery is, and that one of a step must not have (contract W 9.3). */
const MARKS = ['callback', 'is-failure', 'failure-callback', 'unknown-sdk'].map((name) => `upstash-workflow-${name}`);

export const starting: Section = {
  title: 'Starting',
  statements: [
    statement('W1', 'A batch with one init message returns one message id.', async (server) => {
      const item = { destination: server.destination('/wf'), headers: initHeaders(server, 'wfr_x', '/wf'), body: 'a' };
      const { status, json } = await server.ask('POST', '/v2/batch', { body: JSON.stringify([item]) });
      expect(status).toBeLessThan(300);
      expect(json).toEqual([expect.objectContaining({ messageId: expect.stringMatching(/^msg_/) })]);
      expect(json[0]).not.toHaveProperty('deduplicated');
    }),

    statement('W2', 'The first delivery is a journal with one entry, the payload.', async (server) => {
      const run = await start(server, { payload: '{"hello":1}' });
      const { body, method } = await run.lastDelivery(1);
      const entry = { messageId: run.messageId, body: base64('{"hello":1}'), callType: 'step' };
      expect([method, JSON.parse(body.toString())]).toEqual(['POST', [entry]]);
    }),

    statement('W3', "It names its run, and has the user's headers and those of every delivery.", async (server) => {
      const run = await start(server, { id: 'wfr_x', user: { 'X-User': 'u', Authorization: 'Basic a' } });
      const { headers } = await run.delivery(1);
      expect(headers).toMatchObject({
        'content-type': 'application/json',
        'user-agent': 'Upstash-QStash',
        'upstash-workflow-runid': 'wfr_x',
        'upstash-workflow-url': run.url,
        'upstash-workflow-createdat': String(server.clock.nowMs()),
        'upstash-workflow-init': 'true',
        'upstash-workflow-calltype': 'step',
        'upstash-workflow-sdk-version': '1',
        'upstash-retried': '0',
        'upstash-signature': expect.stringMatching(/^\w+\.[\w-]+\.[\w-]+$/),
        'upstash-caller-ip': '127.0.0.1',
        'x-user': 'u',
        authorization: 'Basic a',
      });
      for (const name of [...MARKS, 'upstash-feature-set', 'upstash-telemetry-sdk', 'upstash-label']) {
        expect(headers, name).not.toHaveProperty(name);
      }
    }),

    statement('W4', 'Its message id is that of the response and of the entry.', async (server) => {
      const run = await start(server);
      const { messageId, entries } = await run.delivery(1);
      expect([messageId, entries[0]?.messageId]).toEqual([run.messageId, run.messageId]);
    }),

    statement('W5', 'An empty payload is an empty body in its entry.', async (server) => {
      const run = await start(server, { payload: '' });
      expect(JSON.parse((await run.delivery(1)).body.toString())[0].body).toBe('');
    }),

    statement('W6', 'A payload in UTF-8 comes back byte for byte.', async (server) => {
      const payload = '{"text":"grün 日本語 👩‍🚀 \\u0000"}';
      const run = await start(server, { payload });
      expect((await run.delivery(1)).texts).toEqual([payload]);
    }),

    statement('W7', 'The signature covers the delivered bytes and the destination.', async (server) => {
      const run = await start(server);
      const received = await run.delivery(1);
      const signature = signatureOf(received);
      expect(signature.isSignedWith((await server.get('/v2/keys')).current)).toBe(true);
      const body = `${createHash('sha256').update(received.body).digest('base64url')}=`;
      expect(signature.claims).toMatchObject({ body, sub: run.url, iss: 'Upstash' });
    }),

    statement('W8', 'A second init while the run is active starts no run.', async (server) => {
      const run = await startAndDeliver(server, { id: 'wfr_x' });
      const [second] = await server.post('/v2/batch', [triggerItem(server, { id: 'wfr_x', path: run.path })]);
      expect(second).toMatchObject({ messageId: run.messageId, deduplicated: true });
      await run.lastDelivery(1);
    }),

    statement('W9', 'Of two inits in a batch, only the one of an active run is deduplicated.', async (server) => {
      for (const path of ['/old', '/new']) server.endpoint.replies(path, DONE);
      await startAndDeliver(server, { id: 'wfr_old', path: '/old' });
      const items = [
        triggerItem(server, { id: 'wfr_old', path: '/old' }),
        triggerItem(server, { id: 'wfr_new', path: '/new' }),
      ];
      const [old, fresh] = await server.post('/v2/batch', items);
      expect([old.deduplicated, fresh.deduplicated ?? false]).toEqual([true, false]);
      await server.endpoint.arrival('/new');
    }),

    statement(
      'W10',
      'After a run has ended, its id can start a new one, with a later creation time.',
      async (server) => {
        const trigger = { id: 'wfr_x', path: '/wf', payload: 'same' };
        server.endpoint.replies('/wf', DONE);
        const first = await startAndDeliver(server, trigger);
        await first.finish();
        const second = await start(server, trigger); // in the same millisecond
        expect(second.messageId).not.toBe(first.messageId);
        const [before, after] = [await first.delivery(1), await second.delivery(2)];
        expect(after.texts).toEqual(['same']);
        const createdAt = (delivery: Json): number => Number(delivery.headers['upstash-workflow-createdat']);
        expect(createdAt(after)).toBeGreaterThan(createdAt(before));
      },
    ),

    statement('W11', 'Logs of the id show both runs; with the creation time, only one.', async (server) => {
      const first = await startAndDeliver(server, { id: 'wfr_x' });
      const createdAt = await first.createdAtMs();
      await first.finish();
      server.clock.advance(1000);
      await start(server, { id: 'wfr_x' });
      const query = '/v2/workflows/logs?workflowRunId=wfr_x';
      const { runs } = await server.get(query);
      expect(runs.map((run: Json) => run.workflowRunCreatedAt)).toEqual([createdAt + 1000, createdAt]);
      const one = await server.get(`${query}&workflowCreatedAt=${createdAt}`);
      expect(one.runs.map((run: Json) => run.workflowState)).toEqual(['RUN_SUCCESS']);
    }),

    statement('W12', 'A run id without the prefix is used unchanged; a missing one is generated.', async (server) => {
      for (const id of ['order-17', 'wfr-x', 'wfr_wfr_x']) {
        const run = await start(server, { id });
        expect((await run.delivery(1)).headers['upstash-workflow-runid']).toBe(id);
        expect(await run.journal()).toHaveLength(1);
      }
      server.endpoint.replies('/wf', DONE);
      const { 'Upstash-Workflow-RunId': _id, ...anonymous } = initHeaders(server, '', '/wf');
      await server.publish('/wf', anonymous);
      const { headers } = await server.endpoint.arrival('/wf');
      expect(headers['upstash-workflow-runid']).toMatch(/^wfr_.{15,}/);
    }),

    statement('W13', 'A publish with init headers starts a run, as a batch does.', async (server) => {
      const { destination, headers, body } = triggerItem(server, { id: 'wfr_x', path: '/wf' });
      const { messageId } = await server.post(`/v2/publish/${destination}`, undefined, { headers, body });
      const delivery = deliveryOf(await server.endpoint.arrival('/wf'));
      expect([delivery.messageId, delivery.texts]).toEqual([messageId, [body]]);
      expect(delivery.headers['upstash-workflow-runid']).toBe('wfr_x');
    }),

    statement('W14', 'A trigger returns the run that it has started.', async (server) => {
      server.endpoint.replies('/wf', DONE);
      const target = `/v2/trigger/${server.destination('/wf')}`;
      const headers = { 'Upstash-Forward-X-User': 'u', 'Upstash-Label': 'l' };
      const { status, json } = await server.ask('POST', target, { headers, body: 'payload' });
      expect([status, json]).toEqual([
        200,
        { workflowRunId: expect.stringMatching(/^wfr_.{15,}/), workflowCreatedAt: server.clock.nowMs() },
      ]);
      const delivery = deliveryOf(await server.endpoint.arrival('/wf'));
      expect(delivery.texts).toEqual(['payload']);
      expect(delivery.headers).toMatchObject({
        'upstash-workflow-runid': json.workflowRunId,
        'upstash-workflow-url': server.destination('/wf'),
        'upstash-workflow-createdat': String(json.workflowCreatedAt),
        'upstash-workflow-sdk-version': '1',
        'upstash-label': 'l',
        'x-user': 'u',
      });
    }),

    statement('W15', 'A trigger uses the run id that it is given.', async (server) => {
      server.endpoint.replies('/wf', DONE);
      const target = `/v2/trigger/${server.destination('/wf')}`;
      const headers = { 'Upstash-Workflow-RunId': 'abc' };
      const first = await server.post(target, undefined, { headers });
      expect(first).toMatchObject({ workflowRunId: 'abc' });
      expect(await server.post(target, undefined, { headers })).toEqual({ ...first, deduplicated: true });
    }),

    statement('W16', 'A batch of triggers is answered in its order.', async (server) => {
      const destination = server.destination('/wf');
      server.endpoint.replies('/wf', DONE);
      const items = ['a', 'b', 'a'].map((id) => ({
        destination,
        body: id,
        headers: { 'upstash-workflow-runid': id },
      }));
      const { status, json } = await server.ask('POST', '/v2/batch/trigger', { body: JSON.stringify(items) });
      const started = (workflowRunId: string, deduplicated: boolean) => ({
        workflowRunId,
        workflowCreatedAt: server.clock.nowMs(),
        deduplicated,
      });
      expect([status, json]).toEqual([201, [started('a', false), started('b', false), started('a', true)]]);
      for (const bad of ['{}', '[{"body":"a"}]', '[{"destination":"ftp://a"}]']) {
        expect((await server.ask('POST', '/v2/batch/trigger', { body: bad })).status, bad).toBe(400);
      }
    }),

    statement('W17', 'The query of a destination in the path reaches the endpoint.', async (server) => {
      server.endpoint.replies('/wf', DONE);
      await server.post(`/v2/trigger/${server.destination('/wf')}?x=1&y=%20`);
      expect((await server.endpoint.arrival('/wf', 1)).target).toBe('/wf?x=1&y=%20');
      const { headers } = triggerItem(server, { id: 'wfr_x', path: '/wf?x=2' });
      await server.post(`/v2/publish/${server.destination('/wf')}?x=2`, undefined, { headers });
      const { target, headers: delivered } = await server.endpoint.arrival('/wf', 2);
      expect([target, delivered['upstash-workflow-url']]).toEqual(['/wf?x=2', server.destination('/wf?x=2')]);
      await server.post(`/v2/trigger/${encodeURIComponent(server.destination('/wf?x=3'))}`);
      expect((await server.endpoint.arrival('/wf', 3)).target).toBe('/wf?x=3');
    }),

    statement('W18', 'A delay postpones the first delivery; the run is already active.', async (server) => {
      const headers = { 'upstash-delay': '2s' };
      const run = await start(server, { headers });
      const canceled = await start(server, { headers });
      expect((await run.shown()).workflowState).toBe('RUN_STARTED');
      expect((await canceled.cancel()).status).toBe(200);
      server.clock.advance(1999);
      await server.quiet();
      expect(server.endpoint.to(run.path)).toEqual([]);
      server.clock.advance(1);
      await run.lastDelivery(1);
      expect(server.endpoint.to(canceled.path)).toEqual([]);
    }),

    statement('W19', 'A not-before time takes precedence over a delay.', async (server) => {
      const inSeconds = Math.ceil(server.clock.nowMs() / 1000) + 10;
      const run = await start(server, {
        headers: { 'upstash-not-before': String(inSeconds), 'upstash-delay': '1s' },
      });
      server.clock.advance(5000);
      await server.quiet();
      expect(server.endpoint.to(run.path)).toEqual([]);
      server.clock.advanceTo(inSeconds * 1000);
      await run.delivery(1);
    }),

    statement('W20', 'A plain publish to a workflow is delivered raw, as to any URL.', async (server) => {
      await server.publish('/wf', {}, 'raw');
      const { headers, body } = await server.endpoint.arrival('/wf');
      expect(body.toString()).toBe('raw');
      expect(Object.keys(headers).filter((name) => name.startsWith('upstash-workflow'))).toEqual([]);
    }),

    statement('W21', "Forwarded headers never replace the server's own.", async (server) => {
      // What the library forwards of a plain delivery that has become a run.
      const incoming = {
        'upstash-message-id': 'old',
        'upstash-retried': '7',
        'upstash-signature': 'old',
        'upstash-caller-ip': '1.2.3.4',
        'upstash-workflow-runid': 'wfr_old',
        'upstash-workflow-url': 'http://old',
        'upstash-workflow-init': 'false',
        'upstash-workflow-createdat': '1',
        'upstash-schedule-id': 'scd_old',
        'upstash-workflow-sdk-version': '1',
        host: 'old.example',
        connection: 'close',
        'keep-alive': 'timeout=1',
        'content-length': '999',
        'transfer-encoding': 'chunked',
        'content-type': 'text/old',
        'proxy-authorization': 'old',
      };
      const run = await start(server, { id: 'wfr_x', headers: prefixed('upstash-forward-', incoming) });
      const { headers, texts } = await run.delivery(1);
      const signature = signatureOf(await run.delivery(1));
      expect(signature.isSignedWith((await server.get('/v2/keys')).current)).toBe(true);
      expect(texts).toEqual(['{"a":1}']);
      expect(headers).toMatchObject({
        host: new URL(run.url).host,
        'content-type': 'application/json',
        'upstash-message-id': run.messageId,
        'upstash-retried': '0',
        'upstash-caller-ip': '127.0.0.1',
        'upstash-workflow-runid': 'wfr_x',
        'upstash-workflow-url': run.url,
        'upstash-workflow-init': 'true',
        'upstash-workflow-createdat': String(server.clock.nowMs()),
      });
      for (const name of ['upstash-schedule-id', 'proxy-authorization']) expect(headers).not.toHaveProperty(name);
    }),
  ],
};
