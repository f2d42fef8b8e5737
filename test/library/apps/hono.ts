/** Hono with one workflow and with several. */
import { getRequestListener } from '@hono/node-server';
import { Client } from '@upstash/workflow';
import { createWorkflow, serve, serveMany, type WorkflowBindings } from '@upstash/workflow/hono';
import { Hono } from 'hono';
import type { App } from './app.ts';

export const app: App = {
  listener: (env) => {
    const hono = new Hono<{ Bindings: WorkflowBindings }>();
    hono.post(
      '/one',
      serve<{ name: string }>(async (context) => context.run('greet', () => `Hello ${context.requestPayload.name}`), {
        env,
      }),
    );
    const child = createWorkflow<number, number>((context) => context.run('one', () => context.requestPayload * 2), {
      env,
    });
    const parent = createWorkflow<number, number>(
      async (context) => {
        const { body } = await context.invoke('child', { workflow: child, body: context.requestPayload });
        return body + 1;
      },
      { env },
    );
    hono.post('/many/*', serveMany({ child, parent }));
    // The other apps of this process keep the Response that Node has.
    return getRequestListener(hono.fetch, { overrideGlobalObjects: false });
  },
  async use({ env, url, idle }) {
    const client = new Client({ baseUrl: env.QSTASH_URL, token: env.QSTASH_TOKEN });
    const one = await client.trigger({ url: `${url}/one`, body: { name: 'Hono' } });
    const many = await client.trigger({ url: `${url}/many/parent`, body: 21 });
    await idle();
    const { runs } = await client.logs({ filter: { workflowRunId: one.workflowRunId } });
    const { runs: others } = await client.logs({ filter: { workflowRunId: many.workflowRunId } });
    return [runs[0]?.workflowRunResponse, others[0]?.workflowRunResponse];
  },
  sees: ['"Hello Hono"', '43'],
};
