/** How a run ends (contract W 26.63 to 26.71, 12, 17.2). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';
import type { Subject } from '../support/subject.ts';
import { runStep, start, startAndDeliver } from '../support/workflow.ts';

const RUNS = '/v2/workflows/runs';

async function cancelMany(server: Subject, query: Record<string, string | string[]>): Promise<number> {
  const params = Object.entries(query).flatMap(([name, values]) =>
    [values].flat().map((value) => `${name}=${encodeURIComponent(value)}`),
  );
  return (await server.delete(`${RUNS}?${params.join('&')}`)).cancelled;
}

export const ending: Section = {
  title: 'Ending',
  statements: [
    statement('W63', 'The end of a run is recorded with its return value, byte for byte.', async (server) => {
      const run = await startAndDeliver(server);
      expect((await run.finish('"x"')).status).toBeLessThan(300);
      const shown = await run.shown();
      expect(shown).toMatchObject({ workflowState: 'RUN_SUCCESS', workflowRunResponse: '"x"' });
      expect(shown.workflowRunCompletedAt).toBe(server.clock.nowMs());
      expect((await run.logged('RUN_SUCCESS')).workflowRunResponse).toBe('"x"');
    }),

    statement(
      'W64',
      'Ending it again succeeds and changes nothing, and so does ending an unknown run.',
      async (server) => {
        const run = await startAndDeliver(server);
        await run.finish('"x"');
        const before = await run.states();
        server.clock.advance(1000);
        expect((await run.finish('"y"')).status).toBeLessThan(300);
        expect(await run.states()).toEqual(before);
        expect((await run.shown()).workflowRunResponse).toBe('"x"');
        expect((await server.ask('DELETE', `${RUNS}/wfr_unknown?cancel=false`)).status).toBeLessThan(300);
        const canceled = await startAndDeliver(server);
        await canceled.cancel();
        expect((await canceled.finish('"x"')).status).toBeLessThan(300);
        expect((await canceled.shown()).workflowState).toBe('RUN_CANCELED');
      },
    ),

    statement('W65', 'A run that returns nothing has no response.', async (server) => {
      const run = await startAndDeliver(server);
      await run.finish();
      const shown = await run.shown();
      expect(shown.workflowState).toBe('RUN_SUCCESS');
      expect(shown).not.toHaveProperty('workflowRunResponse');
    }),

    statement('W66', 'A run can be cancelled once; after that it gets 404.', async (server) => {
      const run = await startAndDeliver(server);
      const { status, text } = await run.cancel();
      expect([status, text]).toEqual([200, '']);
      expect((await run.shown()).workflowState).toBe('RUN_CANCELED');
      expect((await run.cancel()).status).toBe(404);
      const other = await startAndDeliver(server);
      expect((await server.ask('DELETE', `${RUNS}/${other.id}?cancel=perhaps`)).status).toBe(400);
      expect((await server.ask('DELETE', `${RUNS}/${other.id}?cancel=true`)).status).toBe(200);
      expect((await server.ask('DELETE', `${RUNS}/wfr_unknown`)).status).toBe(404);
    }),

    statement('W67', 'A cancelled run is not in the DLQ, and its failure callback is not sent.', async (server) => {
      const run = await startAndDeliver(server, { failureUrl: server.destination('/failure') });
      await run.cancel();
      await run.lastDelivery(1);
      expect(server.endpoint.to('/failure')).toEqual([]);
      expect(await server.get('/v2/workflows/dlq')).toEqual({ messages: [] });
    }),

    statement('W68', 'A bulk cancel counts the active runs that existed.', async (server) => {
      const [a, b] = [await start(server), await start(server, { headers: { 'upstash-delay': '1h' } })];
      const workflowRunIds = [a.id, b.id, 'wfr_unknown'];
      expect(await cancelMany(server, { workflowRunIds })).toBe(2);
      expect(await server.delete(`${RUNS}?workflowRunIds=${workflowRunIds.join(',')}`)).toEqual({ cancelled: 0 });
      for (const run of [a, b]) expect((await run.shown()).workflowState).toBe('RUN_CANCELED');
    }),

    statement(
      'W69',
      'Runs are cancelled by a prefix of their URL or the whole URL, and by label, combined with AND.',
      async (server) => {
        const url = server.destination('/wf');
        const delayed = { 'upstash-delay': '1h' };
        const runs: [id: string, path: string, label: string][] = [
          ['a', '/wf', 'x'],
          ['b', '/wf/b', 'x'],
          ['c', '/wf/b', 'y'],
          ['d', '/wf/d', 'z'],
          ['e', '/other', 'x'],
        ];
        for (const [id, path, label] of runs) {
          await start(server, { id, path, headers: { ...delayed, 'upstash-label': label } });
        }
        expect(await cancelMany(server, { workflowUrl: url, workflowUrlExactMatch: 'true' })).toBe(1);
        expect(await cancelMany(server, { workflowUrl: url, label: ['nobodys'] })).toBe(0);
        expect(await cancelMany(server, { workflowUrl: url, label: ['x', 'y'] })).toBe(2);
        expect(await cancelMany(server, { workflowUrl: url })).toBe(1);
        expect(await cancelMany(server, { workflowUrl: url })).toBe(0);
        expect(await cancelMany(server, { count: '1' })).toBe(1);
        expect(await cancelMany(server, {})).toBe(0);
      },
    ),

    statement('W70', 'A bulk cancel accepts the JSON bodies of older clients.', async (server) => {
      const begin = async (id: string, path: string): Promise<void> => {
        await start(server, { id, path, headers: { 'upstash-delay': '1h' } });
      };
      for (const id of ['a', 'b', 'c']) await begin(id, '/wf');
      await begin('d', '/wf/d');
      await begin('e', '/wf/e');
      await begin('f', '/other');
      await begin('g', '/other');
      const url = server.destination('/wf');
      expect(await server.delete(RUNS, { workflowRunIds: ['a', 'b', 'x'] })).toEqual({ cancelled: 2 });
      expect(await server.delete(RUNS, { workflowUrl: `${url}/` })).toEqual({ cancelled: 2 });
      expect(await server.delete(RUNS, { workflowUrl: [url] })).toEqual({ cancelled: 1 });
      expect(await server.delete(RUNS, {})).toEqual({ cancelled: 2 });
    }),

    statement('W71', 'A cancelled sleep is never delivered.', async (server) => {
      const run = await startAndDeliver(server);
      const step = { stepId: 1, stepName: 's', stepType: 'SleepFor', sleepFor: 10, concurrent: 1 };
      await run.step(step, { 'upstash-delay': '10s' });
      await run.logged('DELIVERED');
      await run.cancel();
      server.clock.advance(20_000);
      await run.lastDelivery(1);
      expect((await run.states()).slice(-3)).toEqual(['RUN_CANCELED', 'CANCEL_REQUESTED', 'CANCELED']);
      const body = JSON.stringify(run.stepItems([runStep(2)]));
      expect((await server.ask('POST', '/v2/batch', { body })).status).toBe(400);
    }),
  ],
};
