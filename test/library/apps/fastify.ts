/** Fastify, for which the official library has no adapter: its routes create a `Request`. */
import { Client, serve } from '@upstash/workflow';
import Fastify from 'fastify';
import type { App } from './app.ts';

export const app: App = {
  listener: (env) => {
    const { handler } = serve<{ name: string }>(
      async (context) => context.run('greet', () => `Hello ${context.requestPayload.name}`),
      { env },
    );
    const fastify = Fastify();
    fastify.post('/one', async (request, reply) => {
      const response = await handler(
        new Request(`${request.protocol}://${request.host}${request.url}`, {
          method: 'POST',
          headers: request.headers as Record<string, string>,
          body: JSON.stringify(request.body),
        }),
      );
      return reply
        .code(response.status)
        .headers(Object.fromEntries(response.headers))
        .send(await response.text());
    });
    const ready = fastify.ready();
    return async (request, response) => {
      await ready;
      fastify.routing(request, response);
    };
  },
  async use({ env, url, idle }) {
    const client = new Client({ baseUrl: env.QSTASH_URL, token: env.QSTASH_TOKEN });
    const { workflowRunId } = await client.trigger({ url: `${url}/one`, body: { name: 'Fastify' } });
    await idle();
    return (await client.logs({ filter: { workflowRunId } })).runs[0]?.workflowRunResponse;
  },
  sees: '"Hello Fastify"',
};
