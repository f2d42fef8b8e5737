/** Steps that fail: retries, errors with a special meaning, and failure callbacks (contract W 10 to 13). */
import { describe, expect } from 'vitest';
import { USER_HEADERS } from './support/app.ts';
import { type Failure, LIBRARIES, LIBRARY, oldestClient } from './support/library.ts';
import { scenario } from './support/scenario.ts';

/** A failure function that notes what it is told. */
function recorder(): { told: unknown[]; failureFunction: (failure: Failure<unknown>) => Promise<string> } {
  const told: unknown[] = [];
  return {
    told,
    failureFunction: async ({ context, failStatus, failResponse }) => {
      told.push([
        failStatus,
        failResponse,
        context.requestPayload ?? null,
        context.headers.get('x-user'),
        context.workflowRunId,
      ]);
      return 'noted';
    },
  };
}

describe.each(LIBRARIES)('with $name', (library) => {
  scenario('tells the failure function, in a second call', async ({ service }) => {
    const { told, failureFunction } = recorder();
    const path = service.workflow(
      library,
      '/fails',
      async (context) => {
        await context.run('one', () => {
          throw new Error('my error');
        });
      },
      { retries: 0, failureFunction },
    );
    const run = await path.trigger({ body: { payload: '🦦' } });
    const log = await run.finished();
    expect(log.workflowState).toBe('RUN_FAILED');
    expect(told).toEqual([[500, 'my error', { payload: '🦦' }, 'ann', run.id]]);
    expect(service.app.calls('/fails')).toHaveLength(2);
    expect(await run.flat()).toEqual([
      'RUN_STARTED RUN_FAILED',
      'init: CREATED ACTIVE ERROR FAILED',
      'failure callback: CREATED ACTIVE DELIVERED',
    ]);
    expect(await run.groups()).toEqual(['Initial init: STEP_SUCCESS', 'next: STEP_FAILED (1 errors)']);
    expect(log.failureFunction).toMatchObject({
      ...{ state: 'CALLBACK_SUCCESS', failStatus: 500, url: path.url, dlqId: log.dlqId, responseStatus: 200 },
      failResponse: expect.stringContaining('my error'),
      responseBody: expect.stringContaining('noted'),
    });
  });

  scenario('retries as the run says, from the first step to the last', async ({ service }) => {
    const { told, failureFunction } = recorder();
    const attempts: string[] = [];
    const startMs = service.clock.nowMs();
    const path = service.workflow(
      library,
      '/fails',
      async (context) => {
        for (const name of ['one', 'two']) {
          await context.run(name, () => {
            attempts.push(`${name} ${Math.round((service.clock.nowMs() - startMs) / 1000)}`);
            if (attempts.length % 2 === 1) throw new Error('the first time');
          });
        }
        await context.run('three', () => {
          throw new Error('every time');
        });
      },
      { retries: 1, retryDelay: '1000 * (1 + retried)', failureFunction },
    );
    const run = await path.trigger();
    await run.finished();
    expect(attempts).toEqual(['one 0', 'one 1', 'two 1', 'two 2']);
    expect(told).toEqual([[500, 'every time', null, 'ann', run.id]]);
    // Each step in two deliveries, and the failure.
    expect(service.app.calls('/fails').map(({ headers }) => headers['upstash-retried'])).toEqual([
      ...['0', '1', '0', '1', '0', '1', '0'],
    ]);
    expect(await run.flat()).toEqual([
      'RUN_STARTED RUN_FAILED',
      'init: CREATED ACTIVE ERROR RETRY ACTIVE DELIVERED',
      'one: CREATED ACTIVE ERROR RETRY ACTIVE DELIVERED',
      'two: CREATED ACTIVE ERROR RETRY ACTIVE ERROR FAILED',
      'failure callback: CREATED ACTIVE DELIVERED',
    ]);
  });

  scenario('does not retry what must not be', async ({ service }) => {
    const { told, failureFunction } = recorder();
    const path = service.workflow(
      library,
      '/fails',
      async (context) => {
        await context.run('one', () => {
          throw new library.NonRetryable('never again');
        });
      },
      { retries: 3, failureFunction },
    );
    const run = await path.trigger();
    await run.finished();
    expect(told).toEqual([[489, 'never again', null, 'ann', run.id]]);
    expect(service.app.calls('/fails').map(({ status }) => status)).toEqual([489, 200]);
  });

  scenario.for([30, '2m'] as const)('retries when the error says: after %s', async (after, { service }) => {
    const attemptsMs: number[] = [];
    const path = service.workflow(
      library,
      '/busy',
      async (context) =>
        context.run('one', () => {
          attemptsMs.push(service.clock.nowMs());
          if (attemptsMs.length === 1) throw new library.RetryAfter('busy', after);
          return 'done';
        }),
      { retries: 1, retryDelay: '1000' },
    );
    const run = await path.trigger();
    expect(await run.result()).toBe('done');
    const [first = 0, second = 0] = attemptsMs;
    expect(Math.floor((second - first) / 1000)).toBe(after === 30 ? 30 : 120);
    expect(service.app.calls('/busy').map(({ status }) => status)).toEqual([429, 200, 200]);
  });

  scenario('tells another URL of the failure', async ({ service }) => {
    const { app } = service;
    app.plain('/told', () => new Response('thanks'));
    const path = service.workflow<string>(
      library,
      '/fails',
      async (context) => {
        await context.run('one', () => {
          throw new Error('my error');
        });
      },
      { retries: 0, failureUrl: service.at('/told') },
    );
    const run = await path.trigger({ body: 'the payload' });
    const log = await run.finished();
    expect([app.calls('/fails').length, app.calls('/told').length]).toEqual([1, 1]);
    const [{ headers, body } = { headers: {}, body: '' }] = app.calls('/told');
    expect(headers).toMatchObject(USER_HEADERS);
    const told = JSON.parse(body);
    expect(told).toMatchObject({
      ...{ status: 500, url: path.url, workflowRunId: run.id, workflowCreatedAt: log.workflowRunCreatedAt },
      ...{ dlqId: log.dlqId, retried: 0, maxRetries: 0 },
    });
    const decode = (text: string): string => Buffer.from(text, 'base64').toString();
    expect(JSON.parse(decode(told.body))).toMatchObject({ error: 'Error', message: 'my error' });
    expect(decode(told.sourceBody)).toBe('the payload');
    expect(log.failureFunction).toMatchObject({ state: 'CALLBACK_SUCCESS', responseBody: 'thanks' });
  });

  scenario('retries a failure function that fails, and leaves it at that', async ({ service }) => {
    const path = service.workflow(
      library,
      '/fails',
      async (context) => {
        await context.run('one', () => {
          throw new Error('my error');
        });
      },
      {
        ...{ retries: 1, retryDelay: '1000' },
        failureFunction: async () => {
          throw new Error('this too');
        },
      },
    );
    const run = await path.trigger();
    const log = await run.finished();
    expect([log.workflowState, log.failureFunction?.state]).toEqual(['RUN_FAILED', 'CALLBACK_FAIL']);
    expect(service.app.calls('/fails').map(({ status }) => status)).toEqual([500, 500, 500, 500]);
    expect(log.failureFunction?.errors).toHaveLength(2);
  });

  scenario('fails with the result of a call that cannot be taken', async ({ service }) => {
    const { told, failureFunction } = recorder();
    service.app.plain('/third', () => new Response('fine'));
    let timesBroken = 0;
    const path = service.workflow(
      library,
      '/fails',
      async (context) => {
        if (timesBroken > 0) {
          timesBroken -= 1;
          throw new Error('broken meanwhile');
        }
        await context.call('call', { url: service.at('/third') });
      },
      { retries: 1, retryDelay: '1000', failureFunction },
    );
    const run = await path.trigger();
    await service.app.reached('/third', 1);
    timesBroken = 2;
    const log = await run.finished();
    expect(log.workflowState).toBe('RUN_FAILED');
    expect(told).toEqual([[500, 'broken meanwhile', null, 'ann', run.id]]);
    // The beginning, two attempts to bring the result, and the failure.
    expect(service.app.calls('/fails').map(({ status }) => status)).toEqual([200, 500, 500, 200]);
    expect(await run.groups()).toEqual(['Initial init: STEP_SUCCESS', 'Call call: STEP_FAILED (2 errors)']);
  });

  scenario('fails a parallel group with the branch that failed, and drops the others', async ({ service }) => {
    const path = service.workflow(
      library,
      '/group',
      async (context) => {
        await Promise.all([
          context.run('good', () => {}),
          context.run('bad', () => {
            throw new Error('bad');
          }),
          context.sleep('long', 600),
        ]);
      },
      { retries: 1, retryDelay: '5000' },
    );
    const run = await path.trigger();
    expect((await run.finished()).workflowState).toBe('RUN_FAILED');
    expect((await run.groups())[1]).toBe(
      '[Run good: STEP_SUCCESS, Run bad: STEP_FAILED (2 errors), SleepFor long: STEP_CANCELED]',
    );
    // The beginning, two plans of which one fails twice, one result; the newest tells of the failure.
    expect(service.app.calls('/group')).toHaveLength(library === LIBRARY ? 6 : 5);
  });
});

scenario('knows how often it was tried before', async ({ service }) => {
  const path = service.workflow(
    LIBRARY,
    '/retried',
    async (context) => {
      const { retried } = context;
      return context.run('one', () => {
        if (retried === 0) throw new Error('the first time');
        return retried;
      });
    },
    { retries: 1, retryDelay: '1000' },
  );
  const run = await path.trigger();
  expect(await run.result()).toBe(1);
  expect(service.app.calls('/retried')).toHaveLength(3);
});

scenario('names the step that failed, and waits longer each time by itself', async ({ service }) => {
  const attemptsMs: number[] = [];
  const path = service.workflow(LIBRARY, '/fails', async (context) => {
    await context.run('fine', () => {});
    await context.run('broken', () => {
      attemptsMs.push(service.clock.nowMs());
      throw new Error('broken');
    });
  });
  const run = await path.trigger();
  expect((await run.finished()).workflowState).toBe('RUN_FAILED');
  const pauses = attemptsMs.slice(1).map((ms, index) => Math.round((ms - (attemptsMs[index] ?? 0)) / 1000));
  expect(pauses).toEqual([12, 148, 1808]);
  const next = (await run.log()).steps.at(-1)?.steps[0];
  expect(next).toMatchObject({ stepName: 'broken', state: 'STEP_FAILED', retries: 3 });
});

scenario('keeps what an older trigger fixed, when that asks for it', async ({ service }) => {
  const [, library] = LIBRARIES;
  if (library === undefined) throw new Error('there is no older library');
  const path = service.workflow(library, '/fails', async (context) => {
    await context.run('fine', () => {});
    await context.run('broken', () => {
      throw new Error('broken');
    });
  });
  const trigger = { url: path.url, headers: USER_HEADERS, retries: 0, keepTriggerConfig: true };
  const { workflowRunId } = await oldestClient(service.env).trigger(trigger);
  expect((await service.run(workflowRunId, library).finished()).workflowState).toBe('RUN_FAILED');
  // The steps say nothing of retries, which would mean three of them.
  const deliveries = service.app.calls('/fails').filter(({ headers }) => !headers['upstash-workflow-is-failure']);
  expect(deliveries.map(({ status }) => status)).toEqual([200, 500]);
});
