/** Workflows behind `node:http`, and behind frameworks that hand on its requests, such as Express with or without `express.json()`. */
import { pairsOf } from './headers.ts';
import { createWorkflow, routesOf, type ServeManyOptions, type Workflows } from './many.ts';
import { serve as serveWeb } from './serve.ts';
import type { RouteFunction, WorkflowServeOptions } from './types.ts';

export { createWorkflow };

/** What is read of an `IncomingMessage`. */
export interface NodeRequest extends AsyncIterable<Uint8Array> {
  method?: string | undefined;
  url?: string | undefined;
  headers: Record<string, string | string[] | undefined>;
  socket: { encrypted?: boolean };
  /** What a parser of the framework has made of the body. */
  body?: unknown;
  /** The whole path, where a framework has cut it. */
  originalUrl?: string;
}

/** What is called of a `ServerResponse`. */
export interface NodeResponse {
  writeHead(status: number, headers: Record<string, string>): unknown;
  end(text: string): unknown;
}

export type NodeHandler = (request: NodeRequest, response: NodeResponse) => Promise<void>;

/** Serves one workflow, whatever the path. */
export function serve<TInitialPayload = unknown, TResult = unknown>(
  routeFunction: RouteFunction<TInitialPayload, TResult>,
  options?: WorkflowServeOptions<TInitialPayload, TResult>,
): NodeHandler {
  const { handler } = serveWeb(routeFunction, options, { useJSONContent: true });
  return async (request, response) => {
    if (request.method !== 'POST')
      return write(response, new Response('Only POST requests are allowed.', { status: 405 }));
    return write(response, await handler(await webRequestOf(request)));
  };
}

/** Serves each workflow under the last segment of the path. */
export function serveMany(workflows: Workflows, options?: ServeManyOptions): NodeHandler {
  const find = routesOf(workflows, options, (workflow) => serve(workflow.routeFunction, workflow.options));
  for (const workflow of Object.values(workflows)) workflow.useJSONContent = true;
  return async (request, response) => {
    const found = find(request.url ?? '');
    return found instanceof Response ? write(response, found) : found(request, response);
  };
}

async function webRequestOf(request: NodeRequest): Promise<Request> {
  const { headers, socket } = request;
  const url = `${socket.encrypted ? 'https' : 'http'}://${headers['host'] ?? 'localhost'}${request.originalUrl ?? request.url ?? '/'}`;
  return new Request(url, { method: 'POST', headers: pairsOf(headers), body: await bodyOf(request) });
}

/** The body as it came; where a parser has taken it, as JSON text again. */
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

async function write(response: NodeResponse, answer: Response): Promise<void> {
  const text = await answer.text();
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  response.end(text);
}
