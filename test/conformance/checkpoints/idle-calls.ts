/** Idle calls: kept open after a checkpoint with nothing in progress (contract K 3.9 to 3.13). */
import { expect } from 'vitest';
import { decodeCheckpointClaim } from '../../../src/protocol/workflow/checkpoints.ts';
import { called, callOf, end, save, saved, send, sendAlone, sendText, stay, stays } from '../support/checkpoints.ts';
import { type Section, statement } from '../support/statement.ts';
import type { Json } from '../support/subject.ts';
import { DONE, invokeStep, plans, Run, runStep, start, waitStep } from '../support/workflow.ts';

const SLEEP = { step: { ...runStep(1), stepType: 'SleepFor' }, delay: '2s' };

function entry(messageId: string, step: Json, callType = 'step'): Json {
  return { messageId, callType, body: Buffer.from(JSON.stringify(step)).toString('base64') };
}

export const idleCalls: Section = {
  title: 'Idle calls',
  statements: [
    statement(
      'K34',
      'A sleep that ends in time continues in the idle call.',
      async (server) => {
        const { run, token, respond } = await called(server);
        const [one] = await save(server, [token], [{ step: runStep(1) }]);
        const sleep = { ...SLEEP.step, stepId: 2 };
        const answered = stay(server, { done: [one.token], append: [{ step: sleep, delay: '2s' }] });
        await stays(run, one.messageId);
        server.clock.advance(2_000);
        const { entries, next } = await answered;
        expect(entries).toEqual([{ messageId: next.messageId }]);
        expect(next).toEqual({
          messageId: next.messageId,
          token: expect.stringMatching(/^[!-~]{1,512}$/),
          retried: 0,
          entries: [entry(one.messageId, runStep(1)), entry(next.messageId, sleep)],
        });
        const again = stay(server, { done: [next.token], append: [{ step: { ...sleep, stepId: 3 }, delay: '2s' }] });
        await stays(run, next.messageId);
        server.clock.advance(2_000);
        const third = (await again).next;
        expect(third.entries).toEqual([entry(third.messageId, { ...sleep, stepId: 3 })]);
        respond(end(third.token, '"done"'));
        expect(await run.reached('RUN_SUCCESS')).toMatchObject({ workflowRunResponse: '"done"' });
        const states = (await run.events()).filter(({ stepInfo }) => stepInfo?.messageId === next.messageId);
        expect(states.map(({ state }) => state)).toEqual(['CREATED', 'ACTIVE', 'DELIVERED']);
        await run.lastDelivery(1);
      },
      { isOfOneWorker: true },
    ),

    statement('K35', 'So does the result of a call, an event, and the result of an invocation.', async (server) => {
      const { run, token, respond } = await called(server);
      server.endpoint.replies('/third', { status: 201, body: 'yes', headers: { 'X-Own': 'it' } });
      const call = run.callItem(server.destination('/third'));
      const called1 = (await stay(server, { done: [token], append: [{ call }] })).next;
      expect(called1).not.toHaveProperty('entries');
      expect(called1.headers).toMatchObject({ 'Upstash-Workflow-Stepid': ['1'] });
      expect(JSON.parse(called1.body)).toMatchObject({ status: 201, body: Buffer.from('yes').toString('base64') });
      const result = (await stay(server, { done: [called1.token], append: [{ step: runStep(1) }] })).next;
      expect(result.entries.map(({ callType }: Json) => callType)).toEqual(['toCallback', 'fromCallback', 'step']);

      const waiting = stay(server, { done: [result.token], append: [{ wait: { eventId: 'e', step: waitStep(2) } }] });
      await stays(run, result.messageId);
      await server.post('/v2/notify/e', { a: 1 });
      const event = (await waiting).next;
      expect(JSON.parse(Buffer.from(event.entries[0].body, 'base64').toString())).toMatchObject({
        stepId: 2,
        waitTimeout: false,
      });

      const answerChild = server.endpoint.hold('/child');
      const invoke: Json = await run.invokeItem({ id: 'wfr_child', path: '/child', stepId: 3 });
      const invoking = stay(server, { done: [event.token], append: [{ invoke }] });
      const started = { id: 'wfr_child', path: '/child', features: run.features };
      const child = await callOf(new Run(server, started, ''), 1, answerChild);
      await stays(run, event.messageId);
      answerChild(end(child.token, '"x"'));
      const invoked = (await invoking).next;
      expect(JSON.parse(Buffer.from(invoked.entries[0].body, 'base64').toString())).toMatchObject({
        ...invokeStep(3),
        out: '{"body":"\\"x\\"","isCanceled":false,"isFailed":false}',
      });
      respond(end(invoked.token));
      await run.reached('RUN_SUCCESS');
      await run.lastDelivery(1);
    }),

    statement('K36', 'Anything later is delivered by itself; the call then has no message.', async (server) => {
      const { run, token, respond } = await called(server);
      const answered = stay(server, { done: [token], append: [SLEEP], lingerMs: 1_999 });
      await stays(run, run.messageId);
      server.clock.advance(1_999);
      const { entries, next } = await answered;
      expect([entries, next]).toEqual([[{ messageId: expect.stringMatching(/^msg_/) }], undefined]);
      respond(DONE);
      await run.lastDelivery(1);
      server.clock.advance(1);
      const second = await callOf(run, 2, respond);
      expect(second.delivery.messageId).toBe(entries[0].messageId);
    }),

    statement(
      'K37',
      'The appended messages that the call can claim are handed to it, with the journal up to them.',
      async (server) => {
        const { run, token, respond } = await called(server);
        const planned = await save(
          server,
          [token],
          plans(1, 2).map((step) => ({ step })),
        );
        const brought = [];
        for (const [index, plan] of planned.entries()) {
          const step = { ...runStep(index + 1), concurrent: 2 };
          brought.push((await stay(server, { done: [plan.token], append: [{ step }] })).next);
        }
        const [first, second] = brought;
        expect(first.entries.map(({ messageId }: Json) => messageId)).toEqual([
          ...planned.map(({ messageId }) => messageId),
          first.messageId,
        ]);
        expect(second.entries).toHaveLength(1);
        // A call that still holds something has nothing to wait for.
        expect(await stay(server, { done: [first.token] })).toEqual({ entries: [] });
        respond(end(second.token));
        await run.reached('RUN_SUCCESS');
        await run.lastDelivery(1);
      },
    ),

    statement(
      'K38',
      'A failed step counts as an attempt, and returns to the same call.',
      async (server) => {
        const settings = { 'upstash-retries': '2', 'upstash-retry-delay': '1000 * (1 + retried)' };
        const { run, token, respond } = await called(server, { headers: settings, failureUrl: null });
        const [one] = await save(server, [token], [{ step: runStep(1) }]);
        const broken = { status: 500, headers: { 'Upstash-Error-Step-Name': 'two' }, body: '{"message":"broken"}' };
        const failing = stay(server, { failed: [{ token: one.token, ...broken }] });
        expect(await run.logged('ERROR')).toMatchObject({ stepInfo: { messageId: one.messageId } });
        await stays(run, one.messageId);
        server.clock.advance(1_000);
        const { next } = await failing;
        expect(next).toMatchObject({
          messageId: one.messageId,
          retried: 1,
          entries: [entry(one.messageId, runStep(1))],
        });
        expect((await send(server, [one.token])).json).toMatchObject({ reason: 'lost' });
        // The response names the time of the next attempt, which is too late for this call.
        const late = { token: next.token, status: 429, headers: { 'Retry-After': '60' } };
        expect(await stay(server, { failed: [late] })).toEqual({ entries: [] });
        respond(DONE);
        server.clock.advance(59_000);
        await run.lastDelivery(1);
        server.clock.advance(1_000);
        const second = await callOf(run, 2, respond);
        expect([second.delivery.messageId, second.delivery.headers['upstash-retried']]).toEqual([one.messageId, '2']);
        expect(await stay(server, { failed: [{ token: second.token, ...broken }] })).toEqual({ entries: [] });
        await run.reached('RUN_FAILED');
        expect(await run.buried()).toMatchObject({ messageId: one.messageId, responseBody: broken.body });
        expect((await run.states()).filter((state) => state === 'ERROR')).toHaveLength(3);
        respond(DONE);
        await run.lastDelivery(2);
      },
      { isOfOneWorker: true },
    ),

    statement('K39', 'A step that must not be retried fails the run immediately.', async (server) => {
      const { run, token } = await called(server, { headers: { 'upstash-retry-delay': '0' } });
      const final = { status: 489, headers: { 'Upstash-NonRetryable-Error': 'true' }, body: 'never' };
      expect(await stay(server, { failed: [{ token, ...final }] })).toEqual({ entries: [] });
      await run.reached('RUN_FAILED');
      expect(await run.buried()).toMatchObject({ responseStatus: 489, responseBody: 'never' });
    }),

    statement('K40', 'Steps of a group fail separately, and finished ones are not attempted again.', async (server) => {
      const { run, token, respond } = await called(server, {
        headers: { 'upstash-retry-delay': '1000' },
        failureUrl: null,
      });
      const planned = await save(
        server,
        [token],
        plans(1, 3).map((step) => ({ step })),
      );
      const [first, second, third] = planned;
      const [result] = await save(server, [first.token], [{ step: { ...runStep(1), concurrent: 3 } }]);
      const failed = [
        { token: second.token, status: 500, body: 'second' },
        { token: third.token, status: 489, headers: { 'Upstash-NonRetryable-Error': 'true' }, body: 'third' },
      ];
      const unknown = { done: [result.token], failed: [...failed, { token, status: 500 }] };
      const refused = await sendText(server, first.token, JSON.stringify(unknown));
      expect([refused.status, refused.json.reason]).toEqual([409, 'lost']);
      await sendText(server, result.token, JSON.stringify({ done: [result.token], failed }));
      await run.reached('RUN_FAILED');
      expect(await run.buried()).toMatchObject({ messageId: third.messageId, responseBody: 'third' });
      const errors = (await run.events()).filter(({ state }) => state === 'ERROR');
      expect(errors.map(({ stepInfo }) => stepInfo.messageId)).toEqual([second.messageId, third.messageId]);
      respond(DONE);
      await run.lastDelivery(1);
    }),

    statement(
      'K41',
      'An idle call gives up its slot to messages that wait for one.',
      async (server) => {
        const { run, token, respond } = await called(server);
        const answered = stay(server, { done: [token], append: [SLEEP] });
        await saved(run, run.messageId);
        const other = await start(server);
        expect(await answered).not.toHaveProperty('next');
        expect(server.endpoint.to(other.path)).toEqual([]); // the call still has it
        respond(DONE);
        await other.delivery(1);
        server.clock.advance(2_000);
        await run.delivery(2);
      },
      { flags: ['--in-flight-max', '1'], isOfOneWorker: true },
    ),

    statement(
      'K42',
      'A continuation in a call counts towards the rate of its key like any start.',
      async (server) => {
        const flow = { 'upstash-flow-control-key': 'key', 'upstash-flow-control-value': 'rate=2, period=1m' };
        const { run, token, respond } = await called(server, { headers: flow });
        const answered = stay(server, { done: [token], append: [SLEEP] });
        await stays(run, run.messageId);
        server.clock.advance(2_000);
        const { next } = await answered;
        const waiting = stay(server, { done: [next.token], append: [{ step: runStep(2) }] });
        await stays(run, next.messageId);
        server.clock.advance(5_000);
        expect(await waiting).not.toHaveProperty('next');
        respond(DONE);
        await run.lastDelivery(1);
        server.clock.advance(53_000);
        await run.delivery(2);
      },
      { isOfOneWorker: true },
    ),

    statement(
      'K43',
      'The timeout of the call is suspended while it is idle.',
      async (server) => {
        const { run, token } = await called(server, { headers: { 'upstash-timeout': '1s', 'upstash-retries': '0' } });
        const answered = stay(server, { done: [token], append: [SLEEP] });
        await stays(run, run.messageId);
        server.clock.advance(2_000);
        const { next } = await answered;
        server.clock.advance(999);
        const [two] = await save(server, [next.token], [{ step: runStep(2) }]);
        server.clock.advance(1_000);
        await run.reached('RUN_FAILED');
        expect((await run.buried()).messageId).toBe(two.messageId);
      },
      { isOfOneWorker: true },
    ),

    statement(
      'K44',
      'The same checkpoint sent again returns the same message.',
      async (server) => {
        const { run, token, respond } = await called(server);
        const text = JSON.stringify({ done: [token], append: [SLEEP], lingerMs: 5_000 });
        const answered = sendText(server, token, text);
        await stays(run, run.messageId);
        const meanwhile = sendText(server, token, text);
        await server.quiet();
        server.clock.advance(2_000);
        const first = await answered;
        const [second, third] = [await meanwhile, await sendText(server, token, text)];
        expect(first.json.next.token).toMatch(/./);
        expect([second.text, third.text]).toEqual([first.text, first.text]);
        expect(await run.journal()).toHaveLength(2);
        respond(end(first.json.next.token));
        await run.reached('RUN_SUCCESS');
      },
      { isOfOneWorker: true },
    ),

    statement('K45', 'Nothing continues in a call whose endpoint does not wait any more.', async (server) => {
      for (const gives of ['hangs up', 'answers the call']) {
        const { run, token, respond } = await called(server);
        const text = JSON.stringify({ done: [token], append: [SLEEP], lingerMs: 5_000 });
        const hangUp = new AbortController();
        const answered = sendAlone(server, token, text, hangUp.signal).catch(() => 'gone');
        await stays(run, run.messageId);
        if (gives === 'answers the call') respond(DONE);
        else hangUp.abort();
        expect(await answered).toEqual(gives === 'hangs up' ? 'gone' : { entries: [expect.anything()] });
        await server.quiet();
        server.clock.advance(2_000);
        const second = await run.delivery(2);
        expect(second.entries, gives).toHaveLength(2);
      }
    }),

    statement('K46', 'A linger is 0 to 10,000 ms, and a failure has a token and a failing status.', async (server) => {
      const { run, token, respond } = await called(server);
      const other = await called(server);
      const mistakes: Json[] = [
        { done: [token], lingerMs: 10_001 },
        { done: [token], lingerMs: '1s' },
        { failed: [] },
        { failed: [{ token }] },
        { failed: [{ token, status: 200 }] },
        { failed: [{ token, status: 500, body: {} }] },
        { failed: [{ token: other.token, status: 500 }] },
        { failed: [{ token, status: 500 }], append: [{ step: runStep(1) }] },
        { done: [token], failed: [{ token, status: 500 }] },
      ];
      for (const mistake of mistakes) {
        const { status, json } = await sendText(server, token, JSON.stringify(mistake));
        expect([status, json.error], JSON.stringify(mistake)).toEqual([
          422,
          expect.stringMatching(/lingerMs|done|failed/),
        ]);
      }
      expect(await stay(server, { done: [token], lingerMs: 0 })).toEqual({ entries: [] });
      respond(DONE);
      await run.lastDelivery(1);
    }),

    statement(
      'K47',
      'A server that stops leaves no call idle.',
      async (server) => {
        const { run, token } = await called(server);
        const answered = sendAlone(server, token, JSON.stringify({ done: [token], append: [SLEEP], lingerMs: 5_000 }));
        await stays(run, run.messageId);
        await server.close();
        expect(await answered).toEqual({ entries: [expect.anything()] });
      },
      { isOfOneWorker: true },
    ),

    statement(
      'K48',
      'If an idle call receives work and its run is then cancelled, the next checkpoint says so.',
      async (server) => {
        const { run, token, respond } = await called(server);
        const answered = stay(server, { done: [token], append: [SLEEP] });
        await stays(run, run.messageId);
        server.clock.advance(2_000);
        const { next } = await answered;
        await run.cancel();
        const { status, json } = await send(server, [next.token], [{ step: runStep(2) }]);
        expect([status, json.reason]).toEqual([409, 'ended']);
        respond(DONE);
        await run.lastDelivery(1);
      },
      { isOfOneWorker: true },
    ),

    statement('K49', 'A call is not idle for a run that its worker ends.', async (server) => {
      for (const query of ['', '?cancel=false']) {
        const { run, token, respond } = await called(server);
        const answered = stay(server, { done: [token], append: [{ ...SLEEP, delay: '1h' }] });
        await stays(run, run.messageId);
        const worker = decodeCheckpointClaim(token)?.worker ?? 0;
        await server.ask('DELETE', `/v2/workflows/runs/${run.id}${query}`, { worker });
        expect(await answered).toEqual({ entries: [expect.anything()] });
        respond(DONE);
        await run.lastDelivery(1);
      }
    }),

    statement(
      'K50',
      'Nor for a run that fails in another call.',
      async (server) => {
        const { run, token, respond } = await called(server, { failureUrl: null });
        await save(
          server,
          [token],
          plans(1, 2).map((step) => ({ step })),
        );
        respond(DONE);
        await run.delivery(2);
        const staying = await callOf(run, 3, respond);
        const answered = stay(server, { done: [staying.token] });
        await stays(run, staying.delivery.messageId);
        respond({ status: 489, headers: { 'Upstash-NonRetryable-Error': 'true' } });
        expect(await answered).toEqual({ entries: [] });
        respond(DONE);
        await run.lastDelivery(3);
      },
      { isOfOneWorker: true },
    ),
  ],
};
