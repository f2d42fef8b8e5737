/** The library in the frameworks of its users: Hono, Express and Next.js, each over HTTP. */
import * as expressOfNewest from '@upstash/workflow/express';
import * as honoOfNewest from '@upstash/workflow/hono';
import * as nextOfNewest from '@upstash/workflow/nextjs';
import express from 'express';
import { Hono } from 'hono';
import { describe, expect } from 'vitest';
import * as expressOfOldest from 'workflow-oldest/express';
import * as honoOfOldest from 'workflow-oldest/hono';
import * as nextOfOldest from 'workflow-oldest/nextjs';
import { USER_HEADERS } from './support/app.ts';
import { CALL_FOR_EACH_STEP, LIBRARIES, LIBRARY, type Library, type Program } from './support/library.ts';
import { scenario } from './support/scenario.ts';
import type { Service } from './support/service.ts';

const program: Program<{ name: string }> = async (context) => {
  const one = await context.run('one', () => `hello ${context.requestPayload.name}`);
  await context.sleep('pause', 10);
  const [two, three] = await Promise.all([context.run('two', () => `${one}!`), context.run('three', () => 3)]);
  return { two, three };
};

/** By framework: serves `program` at `/one`. */
const FRAMEWORKS: Record<string, (service: Service, library: Library) => void> = {
  Hono: ({ app, env }, library) => {
    const serve = (library === LIBRARY ? honoOfNewest.serve : honoOfOldest.serve) as typeof honoOfNewest.serve;
    const hono = new Hono();
    hono.post('/one', serve(program as never, { env, ...CALL_FOR_EACH_STEP }) as never);
    app.workflow('/one', (request) => hono.fetch(request));
  },
  Express: ({ app, env }, library) => {
    const serve = (library === LIBRARY ? expressOfNewest.serve : expressOfOldest.serve) as typeof expressOfNewest.serve;
    const server = express();
    server.use(express.json());
    server.use('/one', serve(program as never, { env, ...CALL_FOR_EACH_STEP }));
    app.listener('/one', server);
  },
  'Next.js': ({ app, env }, library) => {
    const serve = (library === LIBRARY ? nextOfNewest.serve : nextOfOldest.serve) as typeof nextOfNewest.serve;
    const { POST } = serve(program as never, { env, ...CALL_FOR_EACH_STEP });
    app.workflow('/one', (request) => POST(request as never));
  },
};

describe.each(LIBRARIES)('with $name', (library) => {
  scenario.for(Object.keys(FRAMEWORKS))('runs in %s', async (framework, { service }) => {
    FRAMEWORKS[framework]?.(service, library);
    const run = await service.triggered(library, '/one').trigger({ body: { name: 'Ötter' } });
    expect(await run.result()).toEqual({ two: 'hello Ötter!', three: 3 });
    expect(service.app.calls('/one')).toHaveLength(7);
  });
});

scenario('runs several workflows of one Hono route, which invoke each other', async ({ service }) => {
  const { app, env } = service;
  const child = honoOfNewest.createWorkflow<number, number>(
    (context) => context.run('one', () => context.requestPayload * 2),
    { env, ...CALL_FOR_EACH_STEP },
  );
  const parent = honoOfNewest.createWorkflow<number, unknown>(
    (context) => context.invoke('child', { workflow: child, body: context.requestPayload, headers: USER_HEADERS }),
    { env, ...CALL_FOR_EACH_STEP },
  );
  const hono = new Hono();
  hono.post('/several/*', honoOfNewest.serveMany({ parent, child }) as never);
  app.workflow('/several/', (request) => hono.fetch(request));
  const run = await service.triggered(LIBRARY, '/several/parent').trigger({ body: 21 });
  expect(await run.result()).toEqual({ body: 42, isCanceled: false, isFailed: false });
  expect(app.calls('/several/')).toHaveLength(4);
});
