/** A user's app for tests of the console: endpoints that respond, fail or never respond, and workflows. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { type RouteFunction, serve, WorkflowNonRetryableError } from '@upstash/workflow';
import { stepHeaders } from '../../../bench/workflows/step-headers.ts';
import {
  serve as serveWithCheckpoints,
  type RouteFunction as WaypostRoute,
} from '../../../packages/workflow/src/index.ts';
import type { Servers } from '../../support/servers.ts';
import { HOSTILE, HOSTILE_HEADER, LONG_NAME } from './hostile.ts';

/** By path. */
const WORKFLOWS: Record<string, (app: App) => RouteFunction<unknown>> = {
  '/flows/order': () => async (context) => {
    await context.run(`take the order ${HOSTILE}`, () => ({ said: HOSTILE }));
    await Promise.all([context.run('ask for the price', () => 42), context.run('look in the store', () => true)]);
    await context.sleep('give time to reconsider', '1h');
  },
  '/flows/invoice': () => async (context) => {
    await Promise.all(['paid-42', LONG_NAME].map((event) => context.waitForEvent(`wait for ${event}`, event)));
  },
  '/flows/refund': (app) => async (context) => {
    await context.run('take it back', () => 'a lamp');
    return await context.run('pay out', () => {
      if (app.isBankOpen) return 'paid';
      throw new WorkflowNonRetryableError(`the bank is closed ${HOSTILE}`);
    });
  },
};

/** The workflow at `/flows/bill`, with a library that detects changed code, so that its run is parked. */
const BILL =
  (app: App): WaypostRoute<unknown> =>
  async (context) => {
    await context.run(app.isBillRenamed ? 'write an invoice' : 'write the bill', () => 42);
    await context.waitForEvent('wait for the signature', 'signed-42');
  };

/** Steps of the run at `/long`. It does not use the library, which would be called for each step with the whole journal. */
export const STEPS = 500;

export class App {
  /** Without a slash at the end. */
  url = '';
  isBankOpen = false;
  isRepaired = false;
  isBillRenamed = false;
  readonly #handlers = new Map<string, (request: Request) => Promise<Response>>();

  static async open(servers: Servers): Promise<App> {
    const app = new App();
    app.url = await servers.openEndpoint((request, response) => {
      app.#answer(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)));
    });
    return app;
  }

  /** Registers the workflows, which send their requests to `server`. */
  serveWorkflows(server: { url: string; token: string }): void {
    const env = { QSTASH_URL: server.url, QSTASH_TOKEN: server.token };
    for (const [path, make] of Object.entries(WORKFLOWS)) {
      this.#handlers.set(path, serve(make(this), { env }).handler);
    }
    this.#handlers.set('/flows/bill', serveWithCheckpoints(BILL(this), { env }).handler);
    this.#handlers.set('/long', (request) => continueLongRun(request, server));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', this.url);
    const handler = this.#handlers.get(pathname);
    if (handler !== undefined) {
      const headers = Object.fromEntries(
        Object.entries(request.headersDistinct).map(([name, values = []]) => [name, values.join(', ')]),
      );
      const handled = await handler(
        new Request(`${this.url}${pathname}`, { method: 'POST', headers, body: await text(request) }),
      );
      response.writeHead(handled.status, Object.fromEntries(handled.headers)).end(await handled.text());
      return;
    }
    request.resume();
    if (pathname === '/slow') return; // no response: the connection is closed when the test ends
    const isBroken = pathname === '/broken' && !this.isRepaired;
    response.writeHead(isBroken ? 500 : 200, { 'X-Odd': HOSTILE_HEADER }).end(HOSTILE);
  }
}

/** Sends the results of all steps in the first call, and ends the run once all are recorded. */
async function continueLongRun(request: Request, { url, token }: { url: string; token: string }): Promise<Response> {
  const runId = request.headers.get('upstash-workflow-runid') ?? '';
  const send = (method: string, path: string, body: unknown) =>
    fetch(`${url}${path}`, { method, headers: { Authorization: `Bearer ${token}` }, body: JSON.stringify(body) });
  const recorded = ((await request.json()) as unknown[]).length - 1;
  if (recorded === 0) {
    const steps = Array.from({ length: STEPS }, (_, index) => ({
      destination: request.url,
      headers: stepHeaders(runId, request.url),
      body: JSON.stringify({
        stepId: index + 1,
        stepName: `step ${index}`,
        stepType: 'Run',
        out: `${index}`,
        concurrent: STEPS,
      }),
    }));
    await send('POST', '/v2/batch', steps);
  }
  if (recorded === STEPS) await send('DELETE', `/v2/workflows/runs/${runId}?cancel=false`, 'done');
  return new Response('', { headers: { 'Upstash-Workflow-Sdk-Version': '1', 'Upstash-Workflow-Sdk': 'v1.0.0' } });
}
