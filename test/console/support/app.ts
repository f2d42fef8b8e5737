/** A user's app, for the console to show: it answers, fails, takes its time, and serves workflows. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { type RouteFunction, serve, WorkflowNonRetryableError } from '@upstash/workflow';
import type { Servers } from '../../support/servers.ts';
import { HOSTILE } from './hostile.ts';

/** By path. */
const WORKFLOWS: Record<string, (app: App) => RouteFunction<unknown>> = {
  '/flows/order': () => async (context) => {
    await context.run(`take the order ${HOSTILE}`, () => ({ said: HOSTILE }));
    await Promise.all([context.run('ask for the price', () => 42), context.run('look in the store', () => true)]);
    await context.sleep('give time to reconsider', '1h');
  },
  '/flows/refund': (app) => async (context) => {
    await context.run('take it back', () => 'a lamp');
    return await context.run('pay out', () => {
      if (app.isBankOpen) return 'paid';
      throw new WorkflowNonRetryableError('the bank is closed');
    });
  },
  '/flows/long': () => async (context) => {
    await Promise.all(Array.from({ length: STEPS }, (_, index) => context.run(`step ${index}`, () => index)));
  },
};

/** Of the long workflow. */
export const STEPS = 500;

export class App {
  /** Without a slash at the end. */
  url = '';
  isBankOpen = false;
  isRepaired = false;
  readonly #handlers = new Map<string, (request: Request) => Promise<Response>>();

  static async open(servers: Servers): Promise<App> {
    const app = new App();
    app.url = await servers.openEndpoint((request, response) => {
      app.#answer(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)));
    });
    return app;
  }

  /** From now on its workflows run. */
  serveWorkflows(server: { url: string; token: string }): void {
    const env = { QSTASH_URL: server.url, QSTASH_TOKEN: server.token };
    for (const [path, make] of Object.entries(WORKFLOWS)) {
      this.#handlers.set(path, serve(make(this), { env }).handler);
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', this.url);
    const handler = this.#handlers.get(pathname);
    if (handler !== undefined) {
      const headers = Object.fromEntries(
        Object.entries(request.headersDistinct).map(([name, values = []]) => [name, values.join(', ')]),
      );
      const answer = await handler(
        new Request(`${this.url}${pathname}`, { method: 'POST', headers, body: await text(request) }),
      );
      response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
      return;
    }
    request.resume();
    if (pathname === '/slow') return; // answered when the test ends
    const isBroken = pathname === '/broken' && !this.isRepaired;
    response.writeHead(isBroken ? 500 : 200, { 'X-Odd': encodeURIComponent(HOSTILE) }).end(HOSTILE);
  }
}
