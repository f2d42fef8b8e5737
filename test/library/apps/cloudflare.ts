/** A Cloudflare Worker and a Pages function. Both get their variables with each request. */
import { Client } from '@upstash/workflow';
import { createWorkflow, serve, serveMany } from '@upstash/workflow/cloudflare';
import { type App, listenerOf } from './app.ts';

export const app: App = {
  listener: (env) => {
    const worker = serve<string>(async (context) => context.run('one', () => `${context.requestPayload}!`));
    const child = createWorkflow(async () => 'never called');
    const page = createWorkflow<string, string>(async (context) => context.run('one', () => context.requestPayload));
    const pages = serveMany({ page, child });
    return listenerOf({
      '/worker': (request) => worker.fetch(request, env),
      '/pages/': (request) => pages.fetch({ request, env }),
    });
  },
  async use({ env, url, idle }) {
    const client = new Client({ baseUrl: env.QSTASH_URL, token: env.QSTASH_TOKEN });
    const worker = await client.trigger({ url: `${url}/worker`, body: 'worker' });
    const page = await client.trigger({ url: `${url}/pages/page`, body: 'page' });
    await idle();
    const unknown = await fetch(`${url}/pages/nothing`, { method: 'POST' });
    const { runs } = await client.logs({ filter: { workflowRunId: worker.workflowRunId } });
    const { runs: others } = await client.logs({ filter: { workflowRunId: page.workflowRunId } });
    return [runs[0]?.workflowRunResponse, others[0]?.workflowRunResponse, unknown.status];
  },
  sees: ['"worker!"', '"page"', 404],
};
