/** The common parts of the apps. They import the official library; tests compile and run the same files with ours instead. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import type { WaypostEnvironment } from '../../../src/testing/types.ts';

export type Environment = WaypostEnvironment;

/** What an app is used in. */
export interface World {
  env: Environment;
  /** Of the app, without a slash at the end. */
  url: string;
  /** Lets virtual time pass until nothing is left to do. */
  idle(): Promise<void>;
}

export interface App {
  listener(env: Environment): RequestListener;
  /** Triggers runs, and answers what its user sees of them. */
  use(world: World): Promise<unknown>;
  /** That, with either library. */
  sees: unknown;
}

/** Routes of the web's kind behind Node's server: by their path, or below it when that ends in a slash. */
export function listenerOf(routes: Record<string, (request: Request) => Promise<Response>>): RequestListener {
  return async (from, to) => {
    const path = from.url?.split('?')[0] ?? '';
    const route = Object.entries(routes).find(([at]) => (at.endsWith('/') ? path.startsWith(at) : path === at));
    await (route ? answer(route[1], from, to) : to.writeHead(404).end());
  };
}

async function answer(
  route: (request: Request) => Promise<Response>,
  from: IncomingMessage,
  to: ServerResponse,
): Promise<void> {
  const headers = new Headers(Object.entries(from.headersDistinct).map(([name, values]) => [name, `${values}`]));
  const method = from.method ?? 'POST';
  const hasBody = method !== 'GET' && method !== 'HEAD';
  const body = await text(from);
  const response = await route(
    new Request(`http://${from.headers.host}${from.url}`, { method, headers, ...(hasBody && { body }) }),
  );
  to.writeHead(response.status, Object.fromEntries(response.headers)).end(await response.text());
}
