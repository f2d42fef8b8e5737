/** Webhooks, notifications between runs, and invocations of other workflows. */
import { Client, serve } from '@upstash/workflow';
import { createWorkflow, serveMany } from '@upstash/workflow/nextjs';
import { type App, listenerOf } from './app.ts';

export const app: App = {
  listener: (env) => {
    const child = createWorkflow<number, number>(
      async (context) => {
        await context.sleep('until the parent waits', '1s'); // a notification that nobody waits for is not kept
        await context.notify('tell', 'child-began', { by: context.workflowRunId });
        return context.run('add', () => context.requestPayload + 1);
      },
      { env },
    );
    const parent = createWorkflow<undefined, unknown>(
      async (context) => {
        const { status, body } = await context.call('begin', { workflow: child, body: 1 });
        const [invoked, { eventData }] = await Promise.all([
          context.invoke('child', { workflow: child, body: 41, workflowRunId: 'invoked', label: 'inner' }),
          context.waitForEvent<{ by: string }>('wait', 'child-began', { timeout: 3600 }),
        ]);
        return { status, begun: body.workflowRunId.slice(0, 4), invoked, by: typeof eventData.by };
      },
      { env },
    );
    return listenerOf({
      '/many/': serveMany({ child, parent }).POST,
      '/hook': serve(
        async (context) => {
          const webhook = await context.createWebhook('make');
          await context.run('call it', async () => {
            await fetch(webhook.webhookUrl, { method: 'PUT', body: '{"a":1}', headers: { 'x-of': 'caller' } });
          });
          const called = await context.waitForWebhook('wait', webhook, '1d');
          if (called.timeout) return 'nobody called';
          const { method, headers } = called.request;
          return { method, of: headers.get('x-of'), body: await called.request.json() };
        },
        { env },
      ).handler,
      '/nobody': serve(
        async (context) => {
          const webhook = await context.createWebhook('make');
          const { timeout, request } = await context.waitForWebhook('wait', webhook, '1d');
          return { timeout, request: request?.url };
        },
        { env },
      ).handler,
    });
  },
  async use({ env, url, idle }) {
    const client = new Client({ baseUrl: env.QSTASH_URL, token: env.QSTASH_TOKEN });
    const results: unknown[] = [];
    for (const path of ['hook', 'nobody', 'many/parent']) {
      const { workflowRunId } = await client.trigger({ url: `${url}/${path}` });
      await idle();
      const [run] = (await client.logs({ filter: { workflowRunId } })).runs;
      results.push(JSON.parse(run?.workflowRunResponse ?? 'null'));
    }
    return results;
  },
  sees: [
    { method: 'PUT', of: 'caller', body: { a: 1 } },
    { timeout: true },
    {
      status: 200,
      begun: 'wfr_',
      invoked: { body: 42, isCanceled: false, isFailed: false },
      by: 'string',
    },
  ],
};
