/**
 * Our adapters for Node: plain `node:http`, Express with and without a body parser, Fastify; each with one workflow and with
 * several.
 */
import type { RequestListener } from 'node:http';
import { connect } from 'node:net';
import express from 'express';
import Fastify, { type FastifyInstance } from 'fastify';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import * as ofFastify from '../../packages/workflow/src/fastify.ts';
import { Client, type WorkflowContext } from '../../packages/workflow/src/index.ts';
import * as ofNode from '../../packages/workflow/src/node.ts';
import type { Waypost } from '../../src/testing/types.ts';
import { startWaypost } from '../../src/testing/waypost.ts';
import { Endpoints } from '../support/listen.ts';

type Library = Pick<typeof ofNode, 'createWorkflow'>;

const greet = async (context: WorkflowContext<{ name: string }>) => {
  const greeting = await context.run('greet', () => `Hello ${context.requestPayload.name}`);
  return context.run('end', () => `${greeting}!`);
};

function several({ createWorkflow }: Library, options: { env: Record<string, string> }) {
  const child = createWorkflow<number, number>(
    (context) => context.run('one', () => context.requestPayload * 2),
    options,
  );
  const parent = createWorkflow<number, number>(async (context) => {
    const { body } = await context.invoke('child', { workflow: child, body: context.requestPayload });
    return body + 1;
  }, options);
  return { child, parent };
}

/** Each serves `greet` at `/one`, and `several` below `/many/`. */
const FRAMEWORKS: Record<string, (options: { env: Record<string, string> }) => RequestListener> = {
  'node:http': (options) => {
    const one = ofNode.serve(greet, options);
    const many = ofNode.serveMany(several(ofNode, options));
    return (request, response) => void (request.url === '/one' ? one : many)(request, response);
  },
  Express: (options) => {
    const app = express();
    app.use('/one', ofNode.serve(greet, options));
    app.use('/many', ofNode.serveMany(several(ofNode, options)));
    return app;
  },
  'Express with a parser': (options) => {
    const app = express();
    app.use(express.json());
    app.use('/one', ofNode.serve(greet, options));
    app.use('/many', ofNode.serveMany(several(ofNode, options)));
    return app;
  },
  Fastify: (options) => {
    const app = Fastify();
    const one = ofFastify.serve(greet, options);
    const many = ofFastify.serveMany(several(ofFastify, options));
    app.register(ofFastify.routes({ '/one': one, '/many/*': many }));
    return listenerOf(app);
  },
  'Fastify with its parser': (options) => {
    const app = Fastify();
    app.post('/one', ofFastify.serve(greet, options));
    app.post('/many/*', ofFastify.serveMany(several(ofFastify, options)));
    return listenerOf(app);
  },
};

function listenerOf(app: FastifyInstance): RequestListener {
  const ready = app.ready();
  return async (request, response) => {
    await ready;
    app.routing(request, response);
  };
}

let waypost: Waypost;
const endpoints = new Endpoints();
beforeEach(async () => {
  waypost = await startWaypost();
});
afterEach(async () => {
  endpoints.close();
  await waypost.stop();
});

it.each(Object.entries(FRAMEWORKS))('%s runs one workflow, and several', async (_, listenerOf) => {
  const url = await endpoints.listen(listenerOf({ env: waypost.env() }));
  const client = new Client({ baseUrl: waypost.url, token: waypost.token });
  const [one, many] = await client.trigger([
    { url: `${url}/one`, body: { name: 'Ötter 🦦' } },
    { url: `${url}/many/parent`, body: 21 },
  ]);
  await waypost.runUntilIdle();
  const { runs } = await client.logs();
  const resultOf = (run: typeof one) =>
    runs.find((each) => each.workflowRunId === run?.workflowRunId)?.workflowRunResponse;
  expect([resultOf(one), resultOf(many)]).toEqual(['"Hello Ötter 🦦!"', '43']);
});

it.each(['node:http', 'Express'])('%s answers other methods with 405, and goes on', async (name) => {
  const url = await endpoints.listen(FRAMEWORKS[name]?.({ env: waypost.env() }) ?? (() => {}));
  for (const method of ['GET', 'PUT']) {
    expect((await fetch(`${url}/one`, { method })).status).toBe(405);
  }
});

describe('routes of Fastify', () => {
  /** What a run of a workflow behind `routes` came to, that is begun with this body by a plain request. */
  async function resultOf(program: (context: WorkflowContext) => Promise<unknown>, body: string): Promise<unknown> {
    const app = Fastify();
    app.register(ofFastify.routes({ '/one': ofFastify.serve(program, { env: waypost.env() }) }));
    const url = await endpoints.listen(listenerOf(app));
    await fetch(`${waypost.url}/v2/publish/${url}/one`, {
      method: 'POST',
      headers: { authorization: `Bearer ${waypost.token}`, 'content-type': 'application/json' },
      body,
    });
    await waypost.runUntilIdle();
    const { runs } = await new Client({ baseUrl: waypost.url, token: waypost.token }).logs();
    return runs[0]?.workflowRunResponse;
  }

  it.each([
    ['above the limit that Fastify has', 2 * 1024 * 1024],
    ['that is left to be fetched', 4 * 1024 * 1024],
  ])('take a journal %s', async (_, length) => {
    const program = async (context: WorkflowContext) => {
      const large = await context.run('large', () => 'x'.repeat(length));
      await context.sleep('a while', '1h');
      return context.run('end', () => large.length);
    };
    expect(await resultOf(program, '1')).toBe(String(length));
  });

  it('take the bytes that were signed', async () => {
    const program = (context: WorkflowContext) => context.run('one', () => context.requestPayload);
    expect(await resultOf(program, '{ "spaces" : 1 }')).toBe('{"spaces":1}');
  });

  it('leave the other routes of the app as they are', async () => {
    const app = Fastify();
    app.register(ofFastify.routes({ '/one': ofFastify.serve(greet, { env: waypost.env() }) }));
    app.post('/other', async ({ body }) => body);
    const answer = await app.inject({ method: 'POST', url: '/other', payload: { a: 1 } });
    expect(answer.json()).toEqual({ a: 1 });
  });
});

it('survives a request whose body never ends', async () => {
  const handle = ofNode.serve(greet, { env: waypost.env() });
  let handled: Promise<void> = Promise.reject(new Error('no request came'));
  handled.catch(() => {});
  const url = await endpoints.listen((request, response) => {
    handled = handle(request, response);
    request.once('data', () => socket.destroy());
  });
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.write('POST /one HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nhalf');
  await new Promise((resolve) => socket.once('close', resolve));
  await expect.poll(() => handled).toBeUndefined();
});
