/** Ids of runs that clients write into paths (contract W 2, 26.112). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';
import { start } from '../support/workflow.ts';

export const runIds: Section = {
  title: 'Run ids in paths',
  statements: [
    statement(
      'W112',
      'A run cannot start with an id that a URL path would normalize to another id.',
      async (server) => {
        const victim = await start(server, { id: 'wfr_victim' });
        const target = `/v2/trigger/${server.destination('/wf')}`;
        for (const id of ['x/../wfr_victim', 'orders/42', '.', '..']) {
          const headers = { 'Upstash-Workflow-RunId': id };
          const { status, json } = await server.ask('POST', target, { headers });
          expect([status, json.error]).toEqual([400, expect.stringContaining('the id of a run must not contain')]);
        }
        expect((await victim.shown()).workflowState).toBe('RUN_STARTED');
      },
    ),
  ],
};
