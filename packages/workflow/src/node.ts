/**
 * Serves workflows with `node:http` and with frameworks based on it, such as Express with or without `express.json()`.
 */
import { type EndpointRequest, type Handler, pairsOf, type Reply } from './http.ts';
import { handlerOf } from './serve.ts';
import { createWorkflow, handlerOfMany, type ServeManyOptions, type Workflows } from './serve-many.ts';
import type { RouteFunction, WorkflowServeOptions } from './workflow.ts';

export { createWorkflow };

/** The members of an `IncomingMessage` that are used. */
export interface NodeRequest extends AsyncIterable<Uint8Array> {
  method?: string | undefined;
  url?: string | undefined;
  headers: Record<string, string | string[] | undefined>;
  /** A TLS socket has the member `encrypted`. */
  socket: object;
  /** The body, if a body parser of the framework has read it. */
  body?: unknown;
  /** The whole path, if the framework has shortened `url`. */
  originalUrl?: string;
  /** The scheme of the client's connection, if the framework knows the proxies in front of it. */
  protocol?: string;
}

/** The members of a `ServerResponse` that are used. */
export interface NodeResponse {
  writeHead(status: number, headers: Record<string, string>): unknown;
  end(text: string): unknown;
}

export type NodeHandler = (request: NodeRequest, response: NodeResponse) => Promise<void>;

/** Serves one workflow, at any path. */
export function serve<TInitialPayload = unknown, TResult = unknown>(
  routeFunction: RouteFunction<TInitialPayload, TResult>,
  options?: WorkflowServeOptions<TInitialPayload, TResult>,
): NodeHandler {
  return listenerOf(handlerOf(routeFunction, options, { useJSONContent: true }));
}

/** Serves several workflows, each by its name as the last segment of the path. */
export function serveMany(workflows: Workflows, options?: ServeManyOptions): NodeHandler {
  return listenerOf(handlerOfMany(workflows, options, { useJSONContent: true }));
}

function listenerOf(handle: Handler): NodeHandler {
  return async (request, response) => {
    const reply = request.method === 'POST' ? await handle(incomingOf(request)) : ONLY_POST;
    response.writeHead(reply.status, reply.headers);
    response.end(reply.body);
  };
}

const ONLY_POST: Reply = { status: 405, headers: {}, body: 'Only POST requests are allowed.' };

function incomingOf(request: NodeRequest): EndpointRequest {
  const { headers, socket, protocol = 'encrypted' in socket ? 'https' : 'http' } = request;
  return {
    url: `${protocol}://${headers['host'] ?? 'localhost'}${request.originalUrl ?? request.url ?? '/'}`,
    headers: new Headers(pairsOf(headers)),
    text: () => bodyOf(request),
  };
}

/** Returns the original body, or the JSON of the value with which a body parser has replaced the body. */
async function bodyOf(request: NodeRequest): Promise<string> {
  const { body, headers } = request;
  if (typeof body === 'string') return body;
  if (body instanceof Uint8Array) return new TextDecoder().decode(body);
  if (body !== undefined && body !== null) return headers['content-length'] === '0' ? '' : JSON.stringify(body);
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of request) text += decoder.decode(chunk, { stream: true });
  return text + decoder.decode();
}
