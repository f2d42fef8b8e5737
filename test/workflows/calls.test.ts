/** External calls: their requests and results, and that a failed call never fails a run (contract W 14.5). */
import { describe, expect } from 'vitest';
import { USER_HEADERS, type WebHandler } from './support/app.ts';
import { LIBRARIES, LIBRARY } from './support/library.ts';
import { scenario } from './support/scenario.ts';
import type { Service } from './support/service.ts';

/** By method: how the third party answers. */
const ANSWERS: Record<string, WebHandler> = {
  GET: () => new Response('got', { headers: { 'get-header': 'got-value' } }),
  POST: async (request) => new Response(`posted ${await request.text()}`, { status: 201 }),
  PATCH: () => new Response('99', { status: 401, headers: { 'failing-header': 'failing-value' } }),
  PUT: () => new Response(null, { status: 300 }),
  DELETE: () => Response.json({ foo: 'bar', zed: 2 }, { status: 400 }),
};

/** Serves a third party at `/third`, and answers its URL. */
function openThirdParty({ app }: Service): string {
  app.plain('/third', (request) => ANSWERS[request.method]?.(request) ?? new Response(null, { status: 405 }));
  return `${app.origin}/third`;
}

describe.each(LIBRARIES)('with $name', (library) => {
  scenario('calls in every way, with two calls of its own for each', async ({ service }) => {
    const url = openThirdParty(service);
    // Not every generation sends a text as it is unless told so.
    const body = { body: 'the payload', stringifyBody: false };
    const path = service.workflow<string>(library, '/call', async (context) => {
      const headers = { 'post-header': 'one', 'content-type': 'application/x-special' };
      const posted = await context.call<string>('post', { url, method: 'POST', headers, ...body });
      await context.sleep('pause', 2);
      const got = await context.call<string>('get', { url, headers: { 'get-header': 'two' } });
      const patched = await context.call<number>('patch', { url, method: 'PATCH', retries: 1, retryDelay: '1000' });
      const put = await context.call<string>('put', { url, method: 'PUT', retries: 0 });
      const deleted = await context.call<object>('delete', { url, method: 'DELETE' });
      return {
        ...{ payload: context.requestPayload, posted: [posted.status, posted.body] },
        ...{ got: [got.status, got.body, got.header['Get-Header']] },
        ...{ patched: [patched.status, patched.body, patched.header['Failing-Header']] },
        ...{ put: [put.status, put.body], deleted: [deleted.status, deleted.body] },
      };
    });
    const run = await path.trigger({ body: 'mine' });
    expect(await run.result()).toEqual({
      ...{ payload: 'mine', posted: [201, 'posted the payload'], got: [200, 'got', ['got-value']] },
      ...{ patched: [401, 99, ['failing-value']], put: [300, ''] },
      deleted: [400, { foo: 'bar', zed: 2 }],
    });
    expect(service.app.calls('/call')).toHaveLength(12);
    const third = service.app.calls('/third');
    expect(third.map(({ method }) => method)).toEqual(['POST', 'GET', 'PATCH', 'PATCH', 'PUT', 'DELETE']);
    expect(third[0]?.headers).toMatchObject({ 'post-header': 'one', 'content-type': 'application/x-special' });
    expect(third[1]?.headers['get-header']).toBe('two');
    for (const { headers } of third) {
      expect(Object.keys(headers).filter((name) => /^(x-user|x-trace|upstash-workflow)/.test(name))).toEqual([]);
    }
    expect(await run.flat()).toEqual([
      'RUN_STARTED RUN_SUCCESS',
      'init: CREATED ACTIVE DELIVERED',
      'post (toCallback): CREATED ACTIVE DELIVERED',
      'post (fromCallback): CREATED ACTIVE DELIVERED',
      'post: CREATED ACTIVE DELIVERED',
      'pause: CREATED ACTIVE DELIVERED',
      'get (toCallback): CREATED ACTIVE DELIVERED',
      'get (fromCallback): CREATED ACTIVE DELIVERED',
      'get: CREATED ACTIVE DELIVERED',
      'patch (toCallback): CREATED ACTIVE ERROR RETRY ACTIVE ERROR FAILED',
      'patch (fromCallback): CREATED ACTIVE DELIVERED',
      'patch: CREATED ACTIVE DELIVERED',
      'put (toCallback): CREATED ACTIVE ERROR FAILED',
      'put (fromCallback): CREATED ACTIVE DELIVERED',
      'put: CREATED ACTIVE DELIVERED',
      'delete (toCallback): CREATED ACTIVE ERROR FAILED',
      'delete (fromCallback): CREATED ACTIVE DELIVERED',
      'delete: CREATED ACTIVE DELIVERED',
    ]);
    expect(await run.groups()).toEqual([
      'Initial init: STEP_SUCCESS',
      'Call post: STEP_SUCCESS',
      'SleepFor pause: STEP_SUCCESS',
      'Call get: STEP_SUCCESS',
      'Call patch: STEP_SUCCESS',
      'Call put: STEP_SUCCESS',
      'Call delete: STEP_SUCCESS',
    ]);
    const [, post] = (await run.log()).steps;
    expect(post?.steps[0]).toMatchObject({ callUrl: url, callMethod: 'POST', callResponseStatus: 201, stepId: 1 });
  });

  scenario.for(['failureFunction', 'failureUrl'] as const)(
    'does not report a failing call to its %s',
    async (kind, { service }) => {
      const url = openThirdParty(service);
      let failures = 0;
      service.app.plain('/told', () => {
        failures += 1;
        return new Response();
      });
      const failureFunction = async (): Promise<undefined> => {
        failures += 1;
        return undefined;
      };
      const path = service.workflow(
        library,
        '/call',
        async (context) => (await context.call('delete', { url, method: 'DELETE' })).status,
        { retries: 0, ...(kind === 'failureUrl' ? { failureUrl: service.at('/told') } : { failureFunction }) },
      );
      const run = await path.trigger();
      expect(await run.result()).toBe(400);
      expect([service.app.calls('/call').length, failures]).toEqual([3, 0]);
    },
  );

  scenario('gets bytes that are no text as they were', async ({ service }) => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    service.app.plain('/image', () => new Response(bytes, { headers: { 'content-type': 'image/png' } }));
    const path = service.workflow(library, '/call', async (context) => {
      const { body } = await context.call<string>('image', { url: service.at('/image') });
      return Buffer.from(body, 'latin1').toString('base64');
    });
    const run = await path.trigger();
    expect(await run.result()).toBe(bytes.toString('base64'));
    expect(service.app.calls('/call')).toHaveLength(3);
  });
});

scenario('gives a call up when its time is over, and goes on', async ({ service }) => {
  service.app.plain('/slow', async () => {
    await service.app.hold();
    return new Response('too late');
  });
  const path = service.workflow(LIBRARY, '/call', async (context) => {
    return (await context.call('slow', { url: service.at('/slow'), timeout: 30 })).status;
  });
  const run = await path.trigger();
  expect(await run.result()).toBe(504);
  service.app.release();
  expect(service.app.calls('/call')).toHaveLength(3);
});

scenario('takes the answer of a host that nobody listens on for one', async ({ service }) => {
  const path = service.workflow(LIBRARY, '/call', async (context) => {
    // The discard port, which nothing here serves.
    return (await context.call('nobody', { url: 'http://127.0.0.1:9/', retries: 1, retryDelay: '1000' })).status;
  });
  const run = await path.trigger();
  expect(await run.result()).toBe(502);
  expect(service.app.calls('/call')).toHaveLength(3);
});

scenario('starts another workflow with a call, and does not wait for it', async ({ service }) => {
  const started = LIBRARY.create<unknown, unknown>(async (context) => context.run('one', () => context.requestPayload));
  service.workflows(LIBRARY, '/pair/', {
    caller: LIBRARY.create(async (context) => {
      const settings = { workflow: started, body: { n: 1 }, headers: USER_HEADERS };
      return (await context.call('start', settings)).body;
    }),
    started,
  });
  const run = await service.triggered(LIBRARY, '/pair/caller').trigger();
  const { workflowRunId } = (await run.result()) as { workflowRunId: string };
  expect(await service.run(workflowRunId, LIBRARY).result()).toEqual({ n: 1 });
  // The call's result, twice for the caller; for the other a first invocation, its beginning and its step.
  expect([service.app.calls('/pair/caller').length, service.app.calls('/pair/started').length]).toEqual([3, 3]);
});
