/**
 * Next.js: route handlers of the app router and API routes of the pages router, with one workflow and with several, which
 * invoke each other.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { Client } from '@upstash/workflow';
import {
  createWorkflow,
  createWorkflowPagesRouter,
  serve,
  serveMany,
  serveManyPagesRouter,
  servePagesRouter,
} from '@upstash/workflow/nextjs';
import { type App, listenerOf } from './app.ts';

const double = createWorkflow(async (context: Parameters<Parameters<typeof serve<number>>[0]>[0]) =>
  context.run('double', () => context.requestPayload * 2),
);

const parent = createWorkflow<number, unknown>(async (context) => {
  const { body, isFailed } = await context.invoke('double it', { workflow: double, body: context.requestPayload });
  return { body: body + 1, isFailed };
});

const child = createWorkflowPagesRouter<string, string>(async (context) =>
  context.run('shout', () => context.requestPayload.toUpperCase()),
);

const caller = createWorkflowPagesRouter<string, string>(async (context) => {
  const { body } = await context.invoke('child', { workflow: child, body: context.requestPayload, retries: 1 });
  return body;
});

/** As Next.js makes them: the body parsed, and a few methods on the answer. */
function apiRoute(handler: (request: never, response: never) => unknown): RequestListener {
  return async (request: IncomingMessage & { body?: unknown }, response: ServerResponse) => {
    const body = await text(request);
    const isJson = request.headers['content-type']?.includes('json') && body !== '';
    request.body = isJson ? JSON.parse(body) : body;
    request.headers['x-forwarded-proto'] = 'http';
    const methods = {
      status(code: number) {
        response.statusCode = code;
        return response;
      },
      json: (value: unknown) => response.end(JSON.stringify(value)),
    };
    await handler(request as never, Object.assign(response, methods) as never);
  };
}

export const app: App = {
  listener: (env) => {
    const { POST } = serve<{ name: string }>(
      async (context) => context.run('greet', () => `Hello ${context.requestPayload.name}`),
      { env },
    );
    double.options = { env };
    parent.options = { env };
    child.options = { env };
    caller.options = { env };
    const web = listenerOf({ '/one': POST, '/many/': serveMany({ parent, double }).POST });
    const page = apiRoute(
      servePagesRouter<{ name: string }>(
        async (context) => context.run('greet', () => `Good day ${context.requestPayload.name}`),
        { env },
      ).handler,
    );
    const pages = apiRoute(serveManyPagesRouter({ child, caller }).handler);
    return (request, response) => {
      if (request.url?.startsWith('/pages/')) pages(request, response);
      else if (request.url === '/page') page(request, response);
      else web(request, response);
    };
  },
  async use({ env, url, idle }) {
    const client = new Client({ baseUrl: env.QSTASH_URL, token: env.QSTASH_TOKEN });
    const triggered = await client.trigger([
      { url: `${url}/one`, body: { name: 'Ötter' } },
      { url: `${url}/page`, body: { name: 'Otter' } },
      { url: `${url}/many/parent`, body: 21 },
      { url: `${url}/pages/caller`, body: 'loud' },
    ]);
    await idle();
    const results: unknown[] = [];
    for (const { workflowRunId } of triggered) {
      const [run] = (await client.logs({ filter: { workflowRunId } })).runs;
      results.push(run?.workflowRunResponse);
    }
    return results;
  },
  sees: ['"Hello Ötter"', '"Good day Otter"', '{"body":43,"isFailed":false}', '"LOUD"'],
};
