/**
 * The user's app: an HTTP server on loopback that serves workflows through the client library, and all other endpoints of a
 * scenario. Every request is recorded.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import http from 'node:http';
import { text } from 'node:stream/consumers';
import { listen } from '../../support/listen.ts';

/** As the library's adapters for Hono, Next.js and plain fetch take it. */
export type WebHandler = (request: Request) => Response | Promise<Response>;

export interface Call {
  method: string;
  path: string;
  /** Names in lower case. */
  headers: http.IncomingHttpHeaders;
  /** What a Node listener reads itself is not on record: empty for those. */
  body: string;
  /** Requests to the same path that were not answered yet when it came. */
  beside: number;
  /** `undefined` until it is answered. */
  status?: number;
}

/** What every trigger here sends along, and every request to a workflow must have: headers of the user. */
export const USER_HEADERS: Readonly<Record<string, string>> = { 'x-user': 'ann', 'x-trace': '7' };

interface Route {
  handle: WebHandler | http.RequestListener;
  kind: 'workflow' | 'plain' | 'listener';
}

export class App {
  readonly #server = http.createServer((request, response) => this.#take(request, response));
  readonly #routes = new Map<string, Route>();
  readonly #calls: Call[] = [];
  /** Requests to workflows without the user's headers, and handlers that threw: a scenario expects none of them. */
  readonly mishaps: string[] = [];
  readonly #held = new Set<() => void>();
  /** What is held back of the request that is being handled. */
  readonly #heldOfRequest = new AsyncLocalStorage<Set<() => void>>();
  readonly #awaited = new Set<() => void>();
  #answering = 0;
  origin = '';

  async open(): Promise<void> {
    this.origin = await listen(this.#server);
  }

  /** A workflow at `path`, or below it when it ends in a slash. */
  workflow(path: string, handle: WebHandler): void {
    this.#routes.set(path, { handle, kind: 'workflow' });
  }

  /** The same through a Node listener, as Express is one. */
  listener(path: string, handle: http.RequestListener): void {
    this.#routes.set(path, { handle, kind: 'listener' });
  }

  /** Anything else that a scenario calls. */
  plain(path: string, handle: WebHandler): void {
    this.#routes.set(path, { handle, kind: 'plain' });
  }

  /** Requests so far to `path`, or below it when it ends in a slash, in order of arrival. */
  calls(path: string): Call[] {
    return this.#calls.filter((call) => matches(path, call.path));
  }

  /** Resolves with the `nth` request to `path` (from 1). For a handler, or a step in it, to wait for what others do. */
  reached(path: string, nth: number): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (this.calls(path).length < nth) return;
        this.#awaited.delete(look);
        resolve();
      };
      this.#awaited.add(look);
      look();
    });
  }

  /** Requests that are being answered, those that are held back apart. */
  get answering(): number {
    return this.#answering - this.#held.size;
  }

  /** Requests that are held back. */
  get held(): number {
    return this.#held.size;
  }

  /**
   * For a handler, or a step in it: resolves when `release` is called, or when its caller hangs up. Others go on meanwhile,
   * and time may pass.
   */
  hold(): Promise<void> {
    return new Promise((resolve) => {
      const letGo = (): void => {
        this.#held.delete(letGo);
        resolve();
      };
      this.#held.add(letGo);
      this.#heldOfRequest.getStore()?.add(letGo);
    });
  }

  /** Lets all go on that are held back. */
  release(): void {
    for (const letGo of this.#held) letGo();
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #take(request: http.IncomingMessage, response: http.ServerResponse): void {
    const path = new URL(request.url ?? '/', this.origin).pathname;
    const beside = this.#calls.filter((other) => other.path === path && other.status === undefined).length;
    const call: Call = { method: request.method ?? '', path, headers: request.headers, body: '', beside };
    this.#calls.push(call);
    for (const look of this.#awaited) look();
    this.#answering += 1;
    const held = new Set<() => void>();
    response.on('close', () => {
      this.#answering -= 1;
      call.status = response.statusCode;
      for (const letGo of held) letGo();
    });
    this.#heldOfRequest.run(held, () => this.#route(call, request, response));
  }

  #route(call: Call, request: http.IncomingMessage, response: http.ServerResponse): void {
    const { path } = call;
    const route = this.#routeOf(path);
    if (route === undefined) {
      this.mishaps.push(`${call.method} ${path}: no such route`);
      response.writeHead(404).end();
      return;
    }
    if (route.kind !== 'plain') this.#expectUserHeaders(call);
    if (route.kind === 'listener') {
      (route.handle as http.RequestListener)(request, response);
      return;
    }
    this.#answer(route.handle as WebHandler, call, request, response).catch((error: unknown) => {
      this.mishaps.push(`${call.method} ${path}: ${String(error)}`);
      response.writeHead(500).end();
    });
  }

  async #answer(handle: WebHandler, call: Call, from: http.IncomingMessage, to: http.ServerResponse): Promise<void> {
    call.body = await text(from);
    const headers = new Headers();
    for (const [name, values = []] of Object.entries(from.headersDistinct)) {
      for (const value of values) headers.append(name, value);
    }
    const hasBody = call.method !== 'GET' && call.method !== 'HEAD';
    const url = `${this.origin}${from.url}`;
    const answer = await handle(
      new Request(url, { method: call.method, headers, ...(hasBody && { body: call.body }) }),
    );
    to.writeHead(answer.status, Object.fromEntries(answer.headers)).end(Buffer.from(await answer.arrayBuffer()));
  }

  #routeOf(path: string): Route | undefined {
    for (const [pattern, route] of this.#routes) if (matches(pattern, path)) return route;
    return undefined;
  }

  #expectUserHeaders({ method, path, headers }: Call): void {
    for (const [name, value] of Object.entries(USER_HEADERS)) {
      if (headers[name] !== value) this.mishaps.push(`${method} ${path}: ${name} is ${String(headers[name])}`);
    }
  }
}

function matches(pattern: string, path: string): boolean {
  return pattern.endsWith('/') ? path.startsWith(pattern) : path === pattern;
}
