/** Express with one workflow and with several, behind its body parser. */
import { Client } from '@upstash/workflow';
import { createWorkflow, serve, serveMany } from '@upstash/workflow/express';
import express from 'express';
import type { App } from './app.ts';

export const app: App = {
  listener: ({ QSTASH_URL, QSTASH_TOKEN }) => {
    // Without signing keys anybody may begin a run.
    const env = { QSTASH_URL, QSTASH_TOKEN };
    const server = express();
    server.use(express.json());
    server.use(
      '/one',
      serve<{ name: string }>(async (context) => context.run('greet', () => `Hello ${context.requestPayload.name}`), {
        env,
      }),
    );
    const child = createWorkflow<number[], number>(
      (context) => context.run('sum', () => context.requestPayload.reduce((sum, each) => sum + each, 0)),
      { env },
    );
    const parent = createWorkflow<undefined, number>(
      async (context) => {
        const { body } = await context.invoke('child', { workflow: child, body: [20, 22] });
        return body;
      },
      { env },
    );
    server.use('/many', serveMany({ child, parent }));
    return server;
  },
  async use({ env, url, idle }) {
    const client = new Client({ baseUrl: env.QSTASH_URL, token: env.QSTASH_TOKEN });
    const one = await client.trigger({ url: `${url}/one`, body: { name: 'Express' } });
    const many = await client.trigger({ url: `${url}/many/parent` });
    // A plain request begins a run, too.
    const direct = await fetch(`${url}/one`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"name":"you"}',
    });
    const { workflowRunId } = (await direct.json()) as { workflowRunId: string };
    await idle();
    const results: unknown[] = [];
    for (const id of [one.workflowRunId, many.workflowRunId, workflowRunId]) {
      const [run] = (await client.logs({ filter: { workflowRunId: id } })).runs;
      results.push(run?.workflowRunResponse);
    }
    return results;
  },
  sees: ['"Hello Express"', '42', '"Hello you"'],
};
