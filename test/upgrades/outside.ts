/** The destinations of the stored messages: endpoints and an app with workflows, on one origin. */
import http from 'node:http';
import { text } from 'node:stream/consumers';
import { createWorkflow, serveMany } from '@upstash/workflow/nextjs';
import { DEVELOPMENT_ACCOUNTS } from '../../src/config/development.ts';
import { listen, portOf } from '../support/listen.ts';

export interface Arrival {
  path: string;
  messageId: string;
}

/** An event that somebody waits for. */
export const EVENT = 'paid';

/**
 * As long as it ails, `/hangs` never answers and `/fails` answers 500, as does the step of the workflow `fails`. Well,
 * everything answers 200.
 */
export class Outside {
  readonly #server = http.createServer((request, response) => void this.#answer(request, response));
  readonly #arrivals: Arrival[] = [];
  #programs: ((request: Request) => Promise<Response>) | undefined;
  ails: boolean;

  constructor({ ails }: { ails: boolean }) {
    this.ails = ails;
  }

  async open(): Promise<void> {
    await listen(this.#server);
  }

  get port(): number {
    return portOf(this.#server);
  }

  get origin(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Its workflows publish their steps to the server at `url`. */
  servedBy(url: string): void {
    this.#programs = programsOf(this, url);
  }

  /** Requests so far to `path`, in order; all of them without one. */
  arrivals(path?: string): Arrival[] {
    return this.#arrivals.filter((arrival) => path === undefined || arrival.path === path);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const body = await text(request);
    const path = request.url ?? '/';
    this.#arrivals.push({ path, messageId: String(request.headers['upstash-message-id']) });
    if (path.startsWith('/workflows/')) return this.#serve(request, body, response);
    if (this.ails && path === '/hangs') return;
    response.writeHead(this.ails && path === '/fails' ? 500 : 200).end('noted');
  }

  async #serve(request: http.IncomingMessage, body: string, response: http.ServerResponse): Promise<void> {
    if (!this.#programs) throw new Error('the app does not know its server yet');
    const headers = Object.entries(request.headersDistinct).flatMap(([name, values = []]) =>
      values.map((value): [string, string] => [name, value]),
    );
    const answer = await this.#programs(new Request(`${this.origin}${request.url}`, { method: 'POST', headers, body }));
    response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
  }
}

function programsOf(outside: Outside, url: string): (request: Request) => Promise<Response> {
  const sleeps = createWorkflow(async (context) => {
    const before = await context.run('before', () => 'early');
    await context.sleep('a while', 20);
    return `${before} and late`;
  });
  const invokes = createWorkflow(async (context) => {
    const { body } = await context.invoke('child', { workflow: sleeps, body: 'for a child' });
    return `my child says ${String(body)}`;
  });
  const waits = createWorkflow(async (context) => {
    const { eventData, timeout } = await context.waitForEvent('payment', EVENT, { timeout: '300d' });
    return timeout ? 'unpaid' : eventData;
  });
  const waitsInVain = createWorkflow(async (context) => {
    const { timeout } = await context.waitForEvent('nobody', 'never', { timeout: '20s' });
    return timeout ? 'alone' : 'together';
  });
  const fails = createWorkflow(async (context) => {
    await context.run('well', () => 'kept');
    return context.run('ill', () => {
      if (outside.ails) throw new Error('the app ails');
      return 'mended';
    });
  });
  const ends = createWorkflow(async (context) => context.run('only', () => 'done'));
  const many = serveMany({ sleeps, invokes, waits, waitsInVain, fails, ends }, {
    env: { QSTASH_URL: url, QSTASH_TOKEN: DEVELOPMENT_ACCOUNTS[0].token },
  } as object);
  return async (request) => (await many.POST(request as never)) as Response;
}
