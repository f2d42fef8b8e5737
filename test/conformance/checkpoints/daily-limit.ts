/** The daily limit of messages, applied to checkpoints (contract K 4.5). */
import { expect } from 'vitest';
import { called, endWith, save, send } from '../support/checkpoints.ts';
import { type Section, statement } from '../support/statement.ts';
import { runStep } from '../support/workflow.ts';

export const dailyLimit: Section = {
  title: 'Daily limit',
  statements: [
    statement(
      'K33',
      'Appended messages count towards the daily limit as publishes do; above the limit nothing is saved, and the call continues and may end with its last step.',
      async (server) => {
        const { run, token, respond } = await called(server);
        const both = [{ step: runStep(1) }, { step: runStep(2) }];
        const refused = await send(server, [token], both);
        expect([refused.status, refused.json]).toEqual([429, { error: 'Exceeded daily rate limit' }]);
        expect(refused.headers).toMatchObject({ 'ratelimit-limit': '2', 'ratelimit-remaining': '1' });
        const [one] = await save(server, [token], [{ step: runStep(1) }]);
        const invoke = await run.invokeItem({ id: 'wfr_child', path: '/child' });
        for (const element of [{ step: runStep(2) }, { invoke }]) {
          expect((await send(server, [one.token], [element])).status).toBe(429);
        }
        expect(await run.journal()).toHaveLength(2);
        respond(endWith(one.token, runStep(2)));
        await run.reached('RUN_SUCCESS');
        const publish = `/v2/publish/${server.destination('/any')}`;
        expect((await server.ask('POST', publish)).headers).toMatchObject({ 'ratelimit-remaining': '0' });
      },
      { flags: ['--messages-per-day-max', '2'] },
    ),
  ],
};
