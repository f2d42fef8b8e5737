/** Workflows in Fastify: `app.post('/workflow', serve(...))`. */
import { pairsOf } from './headers.ts';
import { createWorkflow, routesOf, type ServeManyOptions, type Workflows } from './many.ts';
import { serve as serveWeb } from './serve.ts';
import type { RouteFunction, WorkflowServeOptions } from './types.ts';

export { createWorkflow };

/** What is read of a `FastifyRequest`. */
export interface FastifyRequest {
  protocol: string;
  host: string;
  url: string;
  headers: Record<string, string | string[] | undefined>;
  body: unknown;
}

/** What is called of a `FastifyReply`. */
export interface FastifyReply {
  code(status: number): FastifyReply;
  headers(headers: Record<string, string>): FastifyReply;
  send(text: string): unknown;
}

export type FastifyHandler = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

/** Serves one workflow, whatever the path. */
export function serve<TInitialPayload = unknown, TResult = unknown>(
  routeFunction: RouteFunction<TInitialPayload, TResult>,
  options?: WorkflowServeOptions<TInitialPayload, TResult>,
): FastifyHandler {
  const { handler } = serveWeb(routeFunction, options, { useJSONContent: true });
  return async (request, reply) => send(reply, await handler(webRequestOf(request)));
}

/** Serves each workflow under the last segment of the path. */
export function serveMany(workflows: Workflows, options?: ServeManyOptions): FastifyHandler {
  const find = routesOf(workflows, options, (workflow) => serve(workflow.routeFunction, workflow.options));
  for (const workflow of Object.values(workflows)) workflow.useJSONContent = true;
  return async (request, reply) => {
    const found = find(request.url);
    return found instanceof Response ? send(reply, found) : found(request, reply);
  };
}

function webRequestOf({ protocol, host, url, headers, body }: FastifyRequest): Request {
  const text = typeof body === 'string' ? body : body === undefined || body === null ? '' : JSON.stringify(body);
  return new Request(`${protocol}://${host}${url}`, { method: 'POST', headers: pairsOf(headers), body: text });
}

async function send(reply: FastifyReply, answer: Response): Promise<unknown> {
  return reply
    .code(answer.status)
    .headers(Object.fromEntries(answer.headers))
    .send(await answer.text());
}
