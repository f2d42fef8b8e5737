/** The last step of a run, sent together with the end of the run (contract K 5.7). */
import { expect } from 'vitest';
import { END_STEP_BYTES_MAX } from '../../../src/protocol/workflow/checkpoints.ts';
import { called, callOf, end, endWith, save } from '../support/checkpoints.ts';
import { type Section, statement } from '../support/statement.ts';
import { plans, type Run, runStep } from '../support/workflow.ts';

/** All that is shown of a run, but ids, names and times. */
async function shownOf(run: Run): Promise<string> {
  const ids = new Map<string, number>();
  return JSON.stringify([await run.shown(), await run.events()], null, 1)
    .replaceAll(/msg_[A-Za-z0-9]+/g, (id) => `message ${ids.get(id) ?? ids.set(id, ids.size).size - 1}`)
    .replaceAll(/\d{13}/g, 'time')
    .replaceAll(run.path.slice(1), 'path');
}

export const lastSteps: Section = {
  title: 'Last steps',
  statements: [
    statement(
      'K51',
      'Each delivery with a token carries the maximum length of a last step that is sent with the end.',
      async (server) => {
        const { delivery } = await called(server);
        expect(delivery.headers['upstash-workflow-end-step']).toBe(String(END_STEP_BYTES_MAX));
        const unknown = await called(server, { headers: { 'Upstash-Workflow-Unknown-Sdk': 'true' } });
        expect(unknown.delivery.headers).not.toHaveProperty('upstash-workflow-end-step');
      },
    ),

    statement(
      'K52',
      'The last step may be sent with the end: the run is then the same as with a checkpoint.',
      async (server) => {
        const runs = await Promise.all(
          [true, false].map(async (isWithEnd) => {
            const { run, token, respond } = await called(server, { headers: { 'upstash-label': 'some' } });
            const [one] = await save(server, [token], [{ step: runStep(1, '"ä"') }]);
            if (isWithEnd) {
              respond(endWith(one.token, runStep(2, '"ö"'), '"done"'));
            } else {
              const [two] = await save(server, [one.token], [{ step: runStep(2, '"ö"') }]);
              respond(end(two.token, '"done"'));
            }
            expect((await run.reached('RUN_SUCCESS')).workflowRunResponse).toBe('"done"');
            return run;
          }),
        );
        const [withEnd, before] = await Promise.all(runs.map(shownOf));
        expect(withEnd).toContain('ö');
        expect(withEnd).toBe(before);
      },
    ),

    statement('K53', 'It may be the only step, and does not count towards the rate.', async (server) => {
      const headers = { 'upstash-flow-control-key': 'key', 'upstash-flow-control-value': 'rate=1, period=1d' };
      const { run, token, respond } = await called(server, { headers });
      respond(endWith(token, runStep(1)));
      await run.reached('RUN_SUCCESS');
    }),

    statement(
      'K54',
      'A value that is not the result of a step, or too long for one, is a failed attempt.',
      async (server) => {
        for (const step of [plans(1, 2)[0], [], runStep(1, JSON.stringify('a'.repeat(END_STEP_BYTES_MAX)))]) {
          const { run, token, respond } = await called(server, { headers: { 'upstash-retries': '0' } });
          respond(endWith(token, step));
          await run.reached('RUN_FAILED');
          expect((await run.buried()).responseBody).toContain('the last step');
        }
      },
    ),

    statement('K55', 'If the journal has another result of it, the response ends nothing.', async (server) => {
      const { run, token, respond } = await called(server);
      await run.step(runStep(1, '"first"'));
      respond(endWith(token, runStep(1, '"second"'), '"second"'));
      const next = await callOf(run, 2, respond);
      expect(next.delivery.entries).toHaveLength(2);
      respond(end(next.token, '"first"'));
      expect((await run.reached('RUN_SUCCESS')).workflowRunResponse).toBe('"first"');
      expect((await run.states()).filter((state) => state === 'CREATED')).toHaveLength(2);
    }),
  ],
};
