/** Payloads and results that are too large for a delivery: deliveries omit them, and the library fetches them (contract W 8.3). */
import { describe, expect } from 'vitest';
import { LIBRARIES, LIBRARY } from './support/library.ts';
import { scenario } from './support/scenario.ts';
import type { Service } from './support/service.ts';

/** Deliveries above this are left to be fetched here; 3 MiB by default, which the last scenario has. */
const LAZY_ABOVE = '64KiB';

const LARGE = 'x'.repeat(100 * 1024);

/** Which calls of `path` came with an empty body. */
function empty({ app }: Service, path: string): boolean[] {
  return app.calls(path).map(({ body }) => body === '');
}

async function expectCalls(service: Service, calls: number): Promise<void> {
  expect(service.app.calls('/large')).toHaveLength(calls);
}

describe.each(LIBRARIES)('with $name', (library) => {
  scenario.override({ flags: ['--lazy-fetch-bytes', LAZY_ABOVE] });

  scenario('begins with a large payload', async ({ service }) => {
    const path = service.workflow<string>(library, '/large', async (context) => {
      const one = await context.run('one', () => context.requestPayload.length);
      const two = await context.run('two', () => one + context.requestPayload.length);
      return context.run('three', () => two);
    });
    const run = await path.trigger({ body: LARGE });
    expect(await run.result()).toBe(2 * LARGE.length);
    await expectCalls(service, 4);
    expect(empty(service, '/large')).toEqual([true, true, true, true]);
  });

  scenario('has a step with a large result', async ({ service }) => {
    const path = service.workflow(library, '/large', async (context) => {
      const result = await context.run('one', () => LARGE);
      return context.run('two', () => result === LARGE);
    });
    const run = await path.trigger();
    expect(await run.result()).toBe(true);
    await expectCalls(service, 3);
    expect(empty(service, '/large')).toEqual([false, true, true]);
  });

  scenario('has large results side by side', async ({ service }) => {
    const path = service.workflow(library, '/large', async (context) => {
      const [none, first] = await Promise.all([context.run('1', () => {}), context.run('2', () => LARGE)]);
      const [second, small] = await Promise.all([context.run('3', () => LARGE), context.run('4', () => 4)]);
      return [none === undefined, first === LARGE, second === LARGE, small];
    });
    const run = await path.trigger();
    expect(await run.result()).toEqual([true, true, true, 4]);
    await expectCalls(service, 9);
  });

  scenario('calls what answers much', async ({ service }) => {
    service.app.plain('/third', () => new Response(LARGE, { headers: { 'content-type': 'text/plain' } }));
    const path = service.workflow(library, '/large', async (context) => {
      const { status, body } = await context.call<string>('call', { url: service.at('/third') });
      await context.run('after', () => {});
      return [status, body === LARGE];
    });
    const run = await path.trigger();
    expect(await run.result()).toEqual([200, true]);
    await expectCalls(service, 4);
    // The newest library cannot take an answer that was left out: it gets that one in full.
    expect(empty(service, '/large')).toEqual([false, library !== LIBRARY, true, true]);
  });

  scenario('tells of a large error in full', async ({ service }) => {
    const told: unknown[] = [];
    const path = service.workflow<string>(
      library,
      '/large',
      async (context) => {
        await context.run('one', () => {});
        await context.run('two', () => {
          throw new Error(LARGE);
        });
      },
      {
        retries: 0,
        failureFunction: async ({ context, failStatus, failResponse }) => {
          told.push(failStatus, failResponse === LARGE, context.requestPayload);
          return undefined;
        },
      },
    );
    const run = await path.trigger({ body: '“quoted”' });
    await run.finished();
    expect(told).toEqual([500, true, '“quoted”']);
    await expectCalls(service, 3);
    expect(empty(service, '/large')).toEqual([false, false, false]);
  });
});

describe('by default', () => {
  scenario.override({ flags: ['--message-bytes-max', '16MiB'] });

  scenario('begins with a payload of 4 MiB, which many platforms do not take in one request', async ({ service }) => {
    const text = '🦦'.repeat(1024 ** 2);
    const path = service.workflow<string>(LIBRARY, '/large', async (context) => {
      return context.run('one', () => context.requestPayload === text);
    });
    const run = await path.trigger({ body: text });
    expect(await run.result()).toBe(true);
    expect(empty(service, '/large')).toEqual([true, true]);
  });
});
