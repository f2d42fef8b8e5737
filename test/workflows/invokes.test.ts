/** Workflows that invoke others and wait for their end (contract W 14.8, 12.3). */
import { describe, expect } from 'vitest';
import { USER_HEADERS } from './support/app.ts';
import { LIBRARIES, LIBRARY } from './support/library.ts';
import { scenario } from './support/scenario.ts';

describe.each(LIBRARIES)('with $name', (library) => {
  scenario('invokes three levels deep', async ({ service }) => {
    const depths = new Set<string>();
    const third = library.create<number, unknown>(async (context) => {
      await context.sleep('rest', 5);
      return context.run('multiply', () => context.requestPayload * 10);
    });
    const second = library.create<number, unknown>(async (context) => {
      const settings = { workflow: third, body: context.requestPayload + 1, headers: USER_HEADERS };
      const { body } = await context.invoke('third', settings);
      return { second: body };
    });
    const first = library.create<number, unknown>(async (context) => {
      const settings = { workflow: second, body: context.requestPayload + 1, headers: USER_HEADERS };
      return context.invoke('second', settings);
    });
    service.workflows(library, '/levels/', { first, second, third });
    const run = await service.triggered(library, '/levels/first').trigger({ body: 1 });
    expect(await run.result()).toEqual({ body: { second: 30 }, isCanceled: false, isFailed: false });
    const countOf = (level: string): number => service.app.calls(`/levels/${level}`).length;
    expect([countOf('first'), countOf('second'), countOf('third')]).toEqual([2, 2, 3]);
    for (const level of ['first', 'second', 'third']) {
      for (const { headers } of service.app.calls(`/levels/${level}`)) {
        depths.add(`${level} ${headers['upstash-workflow-invoke-count'] ?? 0}`);
      }
    }
    expect([...depths]).toEqual(['first 0', 'second 1', 'third 2']);
    expect(await run.flat()).toEqual([
      'RUN_STARTED INVOKED RUN_SUCCESS',
      'init: CREATED ACTIVE DELIVERED',
      'second: CREATED ACTIVE DELIVERED',
    ]);
    const [, invoke] = (await run.log()).steps;
    const child = invoke?.steps[0];
    if (child === undefined || !('invokedWorkflowRunId' in child)) throw new Error('no invoked workflow');
    const childLog = await service.run(child.invokedWorkflowRunId ?? '', library).log();
    expect(childLog).toMatchObject({ workflowState: 'RUN_SUCCESS', invoker: { workflowRunId: run.id } });
  });

  scenario('learns that what it invoked failed, was cancelled, or is no workflow', async ({ service }) => {
    const { app } = service;
    const failing = library.create<unknown, string>(
      async (context) => {
        await context.run('one', () => {
          throw new Error('not today');
        });
        return 'never';
      },
      { retries: 0 },
    );
    const cancelled = library.create<unknown, string>(async (context) => {
      await context.run('one', () => {});
      await context.cancel();
      return 'never';
    });
    const main = library.create(async (context) => {
      const settings = { body: 1, headers: USER_HEADERS, retries: 0 };
      const failed = await context.invoke('failing', { workflow: failing, ...settings });
      const stopped = await context.invoke('cancelled', { workflow: cancelled, ...settings });
      return [failed, stopped];
    });
    service.workflows(library, '/ends/', { main, failing, cancelled });
    const run = await service.triggered(library, '/ends/main').trigger();
    expect(await run.result()).toEqual([
      { isCanceled: false, isFailed: true },
      { isCanceled: true, isFailed: false },
    ]);
    expect(app.calls('/ends/main')).toHaveLength(3);
    expect(await run.groups()).toEqual([
      'Initial init: STEP_SUCCESS',
      'Invoke failing: STEP_SUCCESS',
      'Invoke cancelled: STEP_SUCCESS',
    ]);
  });
});

scenario('invokes, calls, waits and notifies over six workflows in thirty calls', async ({ service }) => {
  const headers = USER_HEADERS;
  service.app.plain('/third', () => new Response('called'));
  const countsOf = new Map<string, Set<string>>();

  const one = LIBRARY.create<number, unknown>(async (context) => {
    const id = await context.run('step 1', () => 'child-77');
    const ended = await context.invoke('invoke', {
      ...{ workflow: two, body: 'to two', headers: { ...headers, 'child-id': id } },
      ...{ workflowRunId: id, label: 'invoked' },
    });
    const called = await context.call('call', { workflow: four, body: 'to four', headers, retries: 0 });
    const failed = await context.invoke('invoke failing', { workflow: three, body: 'to three', headers, retries: 0 });
    await context.run('step 2', () => {});
    await context.sleep('until four has ended', 3);
    return { ended, called: typeof called.body.workflowRunId, failed };
  });
  const two = LIBRARY.create<string, string>(async (context) => {
    const seen = [context.requestPayload, context.workflowRunId, context.headers.get('child-id'), context.label];
    await context.run('step 1', () => {});
    await context.run('step 2', () => {});
    const branches = await Promise.all([
      context.invoke('first branch', { workflow: branchOne, body: 1, headers }),
      context.invoke('second branch', { workflow: branchTwo, body: 2, headers }),
    ]);
    return [...seen, ...branches.map(({ body }) => JSON.stringify(body))].join(' ');
  });
  const three = LIBRARY.create<string, unknown>(async () => {
    throw new Error('three never works');
  });
  const four = LIBRARY.create<string, { workflowRunId: string }>(async (context) => {
    await context.run('only', () => {});
    return { workflowRunId: '' };
  });
  const branchOne = LIBRARY.create<number, unknown>(async (context) => {
    const late = await context.waitForEvent('in vain', 'never', { timeout: 1 });
    const told = await context.waitForEvent('told', 'told-event', { timeout: '20s' });
    await context.sleep('check', 1);
    return { late: late.timeout, told: told.timeout };
  });
  const branchTwo = LIBRARY.create<number, unknown>(async (context) => {
    const { status } = await context.call('third', { url: service.at('/third') });
    await context.sleep('wait', 5);
    const { notifyResponse } = await context.notify('tell', 'told-event', 'data');
    await context.sleep('check', 1);
    return [status, notifyResponse.length];
  });
  service.workflows(LIBRARY, '/many/', { one, two, three, four, branchOne, branchTwo });
  const run = await service.triggered(LIBRARY, '/many/one').trigger({ body: 123 });
  expect(await run.result()).toEqual({
    ended: {
      body: 'to two wfr_child-77 child-77 invoked {"late":true,"told":false} [200,1]',
      ...{ isCanceled: false, isFailed: false },
    },
    ...{ called: 'string', failed: { isCanceled: false, isFailed: true } },
  });
  expect(service.app.calls('/many/')).toHaveLength(30);
  for (const { path, headers: received } of service.app.calls('/many/')) {
    const counts = countsOf.get(path) ?? new Set();
    countsOf.set(path, counts.add(String(received['upstash-workflow-invoke-count'] ?? 0)));
  }
  expect(Object.fromEntries([...countsOf].map(([path, counts]) => [path, [...counts]]))).toEqual({
    ...{ '/many/one': ['0'], '/many/two': ['1'], '/many/three': ['1'], '/many/four': ['0'] },
    ...{ '/many/branchOne': ['2'], '/many/branchTwo': ['2'] },
  });
});

scenario('lets what it invoked go on when it fails itself, and notes its end', async ({ service }) => {
  const headers = USER_HEADERS;
  let childHasBegun = (): void => {};
  const begun = new Promise<void>((resolve) => {
    childHasBegun = resolve;
  });
  const main = LIBRARY.create(async (context) => {
    const id = await context.run('step 1', () => 'failing-parent');
    const { isFailed } = await context.invoke('invoke', {
      workflow: parent,
      body: undefined,
      headers,
      workflowRunId: id,
    });
    return context.run('last', () => isFailed);
  });
  const parent = LIBRARY.create(async (context) => {
    await Promise.all([
      context.invoke('child', { workflow: child, body: undefined, headers }),
      context.run('failing', async () => {
        await begun;
        throw new LIBRARY.NonRetryable('fails beside it');
      }),
    ]);
  });
  const child = LIBRARY.create(async (context) => {
    childHasBegun();
    await context.sleep('rest', 3);
    await context.run('step', () => {});
  });
  service.workflows(LIBRARY, '/nested/', { main, parent, child });
  const run = await service.triggered(LIBRARY, '/nested/main').trigger();
  expect(await run.result()).toBe(true);
  expect(service.app.calls('/nested/')).toHaveLength(11);
  const failed = service.run('wfr_failing-parent', LIBRARY);
  expect(await failed.groups()).toEqual([
    'Initial init: STEP_SUCCESS',
    '[Invoke child: STEP_SUCCESS, Run failing: STEP_FAILED (1 errors)]',
  ]);
  expect((await failed.log()).workflowState).toBe('RUN_FAILED');
});

scenario('does not wait for what is no workflow', async ({ service }) => {
  service.app.plain('/mixed/page', () => new Response('a page'));
  const page = LIBRARY.create<unknown, unknown>(async () => undefined);
  const main = LIBRARY.create(async (context) => {
    return context.invoke('page', { workflow: page, body: 1, headers: USER_HEADERS });
  });
  service.workflows(LIBRARY, '/mixed/', { main, page });
  const run = await service.triggered(LIBRARY, '/mixed/main').trigger();
  expect(await run.result()).toEqual({ isCanceled: false, isFailed: true });
  // Its one delivery; then, for the library tells of failures by default, the failure.
  expect(service.app.calls('/mixed/page')).toHaveLength(2);
});
