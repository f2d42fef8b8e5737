/**
 * Authorization of runs: the function of the workflow decides before the first step, and forged requests are refused (contract
 * W 10, 9.4).
 */
import { describe, expect } from 'vitest';
import { USER_HEADERS } from './support/app.ts';
import { LIBRARIES, LIBRARY } from './support/library.ts';
import { scenario } from './support/scenario.ts';

const SECRET = { authorization: 'Bearer secret of the app' };

describe.each(LIBRARIES)('with $name', (library) => {
  scenario('lets a run through that brings what is asked for', async ({ service }) => {
    const path = service.workflow(library, '/guarded', async (context) => {
      if (context.headers.get('authorization') !== SECRET.authorization) return;
      await context.run('one', () => {});
      return context.run('two', () => 'in');
    });
    const run = await path.trigger({ headers: SECRET });
    expect(await run.result()).toBe('in');
    expect(service.app.calls('/guarded')).toHaveLength(3);
  });

  scenario('stops another before its first step', async ({ service }) => {
    let steps = 0;
    const path = service.workflow(
      library,
      '/guarded',
      async (context) => {
        if (context.headers.get('authorization') !== SECRET.authorization) return;
        await context.run('one', () => {
          steps += 1;
        });
      },
      { retries: 1, retryDelay: '1000' },
    );
    const run = await path.trigger({ headers: { authorization: 'Bearer wrong' } });
    const log = await run.finished();
    expect([log.workflowState, steps]).toEqual(['RUN_FAILED', 0]);
    // An attempt and a retry are refused. The newest library asks to be told of the failure, whoever defines a function for it.
    const told = library === LIBRARY;
    expect(service.app.calls('/guarded').map(({ status }) => status)).toEqual(told ? [400, 400, 200] : [400, 400]);
    expect(await run.flat()).toEqual([
      'RUN_STARTED RUN_FAILED',
      'init: CREATED ACTIVE ERROR RETRY ACTIVE ERROR FAILED',
      ...(told ? ['failure callback: CREATED ACTIVE DELIVERED'] : []),
    ]);
    expect(await run.groups()).toEqual(['Initial init: STEP_SUCCESS', 'next: STEP_FAILED (2 errors)']);
  });
});

scenario('does not take a call with the marks of a delivery for one', async ({ service }) => {
  const { app } = service;
  let failures = 0;
  app.plain(
    '/target',
    LIBRARY.serve(
      async (context) => {
        if (context.headers.get('authorization') !== SECRET.authorization) return;
        await context.run('never', () => {});
      },
      {
        failureFunction: async () => {
          failures += 1;
          return undefined;
        },
      },
      service.env,
    ),
  );
  const path = service.workflow(LIBRARY, '/attacker', async (context) => {
    const statuses: number[] = [];
    for (const mark of ['Upstash-Workflow-Is-Failure', 'Upstash-Workflow-Callback', 'X-Nothing']) {
      const settings = { url: service.at('/target'), method: 'POST' as const, body: '{"status":200}' };
      const { status } = await context.call(mark, { ...settings, headers: { ...USER_HEADERS, [mark]: 'true' } });
      statuses.push(status);
    }
    return statuses;
  });
  const run = await path.trigger();
  expect(await run.result()).toEqual([500, 400, 400]);
  expect(service.app.calls('/attacker')).toHaveLength(7);
  expect(app.calls('/target').map(({ headers }) => headers['upstash-workflow-is-failure'])).toEqual([
    'true',
    undefined,
    undefined,
  ]);
  expect(app.calls('/target')[1]?.headers['upstash-workflow-callback']).toBe('true');
  expect(failures).toBe(0);
});
