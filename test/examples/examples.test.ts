/** Runs each example as its README says, against a development server. */
import { type ChildProcessByStdio, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { DEVELOPMENT_ACCOUNTS } from '../../src/config/development.ts';
import type { RunningServer } from '../../src/server/server.ts';
import { startDevelopmentServer } from '../support/development-server.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { originOf } from '../support/listen.ts';

const EXAMPLES = join(import.meta.dirname, '../../examples');
const [{ token, signingKeys }] = DEVELOPMENT_ACCOUNTS;
const hasPythonClient = spawnSync('python3', ['-c', 'import qstash']).status === 0;

let waypost: RunningServer;
let environment: Record<string, string>;
beforeAll(async () => {
  waypost = await startDevelopmentServer();
  environment = {
    QSTASH_URL: waypost.url,
    QSTASH_TOKEN: token,
    QSTASH_CURRENT_SIGNING_KEY: signingKeys.current,
    QSTASH_NEXT_SIGNING_KEY: signingKeys.next,
  };
});
afterAll(() => waypost?.stop(0));

/** An example that runs, and what it has printed so far. */
class App {
  readonly url: string;
  readonly #child: ChildProcessByStdio<null, Readable, Readable>;
  output = '';

  constructor(program: string, args: readonly string[], port: number) {
    this.url = `http://127.0.0.1:${port}`;
    const env = { PATH: process.env['PATH'], ...environment, PORT: String(port) };
    this.#child = spawn(program, args, { cwd: EXAMPLES, stdio: ['ignore', 'pipe', 'pipe'], env });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        this.output += chunk.toString('utf8');
      });
    }
  }

  prints(line: string): Promise<unknown> {
    return eventually(
      () => `the line "${line}"; it printed: ${this.output}`,
      () => this.output.includes(`${line}\n`),
    );
  }

  async ended(): Promise<number | null> {
    const [code] = (await once(this.#child, 'close')) as [number | null];
    return code;
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }
}

let app: App | undefined;
let nextServer: Server | undefined;
afterEach(async () => {
  await app?.kill();
  app = undefined;
  nextServer?.closeAllConnections();
  nextServer?.close();
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

const publishesAndReceives = /^published msg_\S+\nreceived {"hello": ?"world"}\n$/;

it('plain-fetch publishes a message, checks its signature, and ends', async () => {
  app = new App(process.execPath, ['plain-fetch/app.mts'], await freePort());
  expect(await app.ended()).toBe(0);
  expect(app.output.split('\n').toSorted()).toEqual([
    '',
    expect.stringMatching(/^published msg_/),
    'received {"hello":"world"}',
  ]);
});

it.skipIf(!hasPythonClient)(
  `python publishes a message, checks its signature, and ends${hasPythonClient ? '' : ' (skipped: there is no package qstash for python3)'}`,
  async () => {
    app = new App('python3', ['python/app.py'], await freePort());
    expect(await app.ended()).toBe(0);
    expect(app.output).toMatch(publishesAndReceives);
  },
);

it('express-workflow waits for the event that an order was paid, and does each step once', async () => {
  app = new App(process.execPath, ['express-workflow/app.mjs'], await freePort());
  await app.prints('ready');
  await ask(`/v2/trigger/${app.url}/order`, { order: 7 });
  await eventually('the run to wait', async () => (await waiters('paid-7')).length === 1);
  await ask('/v2/notify/paid-7', { by: 'Ann' });
  await app.prints('invoice 7 paid by Ann, on its way');
  expect(app.output).toBe('ready\ninvoice 7\ninvoice 7 paid by Ann, on its way\n');
});

describe('nextjs', () => {
  /** Calls the routes as Next.js does: each file of `app` exports a handler by method. */
  async function serveRoutes(): Promise<string> {
    for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
    const routes: Record<string, { POST: (request: Request) => Promise<Response> }> = {
      '/api/sign-up': await import('../../examples/nextjs/app/api/sign-up/route.ts'),
      '/api/welcome': (await import('../../examples/nextjs/app/api/welcome/route.ts')) as never,
    };
    nextServer = createServer(async (request, response) => {
      const url = `http://${request.headers.host}${request.url}`;
      const headers = Object.entries(request.headersDistinct).map(([name, values = []]) => [name, values.join(', ')]);
      const called = new Request(url, {
        method: 'POST',
        headers: headers as [string, string][],
        body: await text(request),
      });
      const answer = await routes[request.url ?? '']?.POST(called);
      response.writeHead(answer?.status ?? 404).end(await answer?.text());
    }).listen(0, '127.0.0.1');
    await once(nextServer, 'listening');
    return originOf(nextServer);
  }

  it('publishes from one route and receives in the other, which nobody else can call', async () => {
    const printed = vi.spyOn(console, 'log').mockReturnValue();
    const url = await serveRoutes();
    const body = JSON.stringify({ email: 'ann@example.com' });
    expect((await fetch(`${url}/api/sign-up`, { method: 'POST', body })).status).toBe(202);
    await eventually('the delivery', () => printed.mock.calls.length > 0);
    expect(printed.mock.calls).toEqual([['welcome ann@example.com']]);
    expect((await fetch(`${url}/api/welcome`, { method: 'POST', body })).status).toBe(403);
    expect(printed.mock.calls).toHaveLength(1);
  });
});

async function ask(path: string, body: object): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const { ok } = await fetch(`${environment['QSTASH_URL']}${path}`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  });
  expect(ok).toBe(true);
}

async function waiters(eventId: string): Promise<unknown[]> {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(`${environment['QSTASH_URL']}/v2/waiters/${eventId}`, { headers });
  return (await response.json()) as unknown[];
}
