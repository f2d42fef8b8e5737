/** Serves workflows in Fastify: `app.register(routes({ '/workflow': serve(...) }))`. */
import { type Handler, pairsOf } from './http.ts';
import { handlerOf } from './serve.ts';
import { createWorkflow, handlerOfMany, type ServeManyOptions, type Workflows } from './serve-many.ts';
import { bodyMember } from './server.ts';
import type { RouteFunction, WorkflowServeOptions } from './workflow.ts';

export { createWorkflow };

/** The members of a `FastifyRequest` that are used. */
export interface FastifyRequest {
  protocol: string;
  host: string;
  url: string;
  headers: Record<string, string | string[] | undefined>;
  body: unknown;
}

/** The members of a `FastifyReply` that are used. */
export interface FastifyReply {
  code(status: number): FastifyReply;
  headers(headers: Record<string, string>): FastifyReply;
  send(text: string): unknown;
}

export type FastifyHandler = (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>;

/** The members of a Fastify instance that are used. */
export interface FastifyScope {
  removeAllContentTypeParsers(): unknown;
  addContentTypeParser(
    contentType: string,
    options: { parseAs: 'string'; bodyLimit: number },
    parser: (request: unknown, body: string, done: (error: null, body: string) => void) => void,
  ): unknown;
  post(path: string, handler: FastifyHandler): unknown;
}

export type FastifyPlugin = (scope: FastifyScope) => Promise<void>;

/** Above the largest delivery: a failure of 32 MiB with a payload of 10 MiB, both in base64. */
const BODY_LIMIT = 64 * 1024 * 1024;

/**
 * A plugin with handlers by path. The plugin receives request bodies as unparsed text and leaves the parsers of other
 * routes unchanged. A JSON parser would reject the empty body of a journal that must be fetched, and lose the bytes that
 * were signed.
 */
export function routes(
  handlers: Record<string, FastifyHandler>,
  { bodyLimit = BODY_LIMIT }: { bodyLimit?: number } = {},
): FastifyPlugin {
  return async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'string', bodyLimit }, (_, body, done) => done(null, body));
    for (const [path, handler] of Object.entries(handlers)) scope.post(path, handler);
  };
}

/** Serves one workflow, at any path. */
export function serve<TInitialPayload = unknown, TResult = unknown>(
  routeFunction: RouteFunction<TInitialPayload, TResult>,
  options?: WorkflowServeOptions<TInitialPayload, TResult>,
): FastifyHandler {
  return routeOf(handlerOf(routeFunction, options, { useJSONContent: true }));
}

/** Serves several workflows, each by its name as the last segment of the path. */
export function serveMany(workflows: Workflows, options?: ServeManyOptions): FastifyHandler {
  return routeOf(handlerOfMany(workflows, options, { useJSONContent: true }));
}

function routeOf(handle: Handler): FastifyHandler {
  return async ({ protocol, host, url, headers, body }, reply) => {
    const response = await handle({
      url: `${protocol}://${host}${url}`,
      headers: new Headers(pairsOf(headers)),
      text: async () => bodyMember(body ?? undefined).body ?? '',
    });
    return reply.code(response.status).headers(response.headers).send(response.body);
  };
}
