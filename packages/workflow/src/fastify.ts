/** Workflows in Fastify: `app.post('/workflow', serve(...))`. */
import { type Handler, pairsOf } from './http.ts';
import { createWorkflow, handlerOfMany, type ServeManyOptions, type Workflows } from './many.ts';
import { handlerOf } from './serve.ts';
import { bodyMember } from './server.ts';
import type { RouteFunction, WorkflowServeOptions } from './workflow.ts';

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
  return routeOf(handlerOf(routeFunction, options, { useJSONContent: true }));
}

/** Serves each workflow under the last segment of the path. */
export function serveMany(workflows: Workflows, options?: ServeManyOptions): FastifyHandler {
  return routeOf(handlerOfMany(workflows, options, { useJSONContent: true }));
}

function routeOf(handle: Handler): FastifyHandler {
  return async ({ protocol, host, url, headers, body }, reply) => {
    const answer = await handle({
      url: `${protocol}://${host}${url}`,
      headers: new Headers(pairsOf(headers)),
      text: async () => bodyMember(body ?? undefined).body ?? '',
    });
    return reply.code(answer.status).headers(answer.headers).send(answer.body);
  };
}
