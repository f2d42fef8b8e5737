/** Payloads and results that are too large to be sent along: deliveries are empty and the library fetches (workflow.md 8.3). */
import { describe, expect } from 'vitest';
import { LIBRARIES, type Library } from './support/library.ts';
import { scenario } from './support/scenario.ts';
import type { Service } from './support/service.ts';

/** 5 MiB, more than most platforms take in one request. */
const LARGE = 'x'.repeat(5 * 1024 ** 2);

const large = scenario.override({ flags: ['--message-bytes-max', '32MiB', '--response-bytes-max', '32MiB'] });

/** Which calls of `path` came with an empty body. */
function empty({ app }: Service, path: string): boolean[] {
  return app.calls(path).map(({ body }) => body === '');
}

async function expectCalls(service: Service, calls: number): Promise<void> {
  expect(service.app.calls('/large')).toHaveLength(calls);
}

describe.each(LIBRARIES)('with $name', (library: Library) => {
  large('begins with a large payload', async ({ service }) => {
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

  large('has a step with a large result', async ({ service }) => {
    const path = service.workflow(library, '/large', async (context) => {
      const result = await context.run('one', () => LARGE);
      return context.run('two', () => result === LARGE);
    });
    const run = await path.trigger();
    expect(await run.result()).toBe(true);
    await expectCalls(service, 3);
    expect(empty(service, '/large')).toEqual([false, true, true]);
  });

  large('has large results side by side', async ({ service }) => {
    const path = service.workflow(library, '/large', async (context) => {
      const [none, first] = await Promise.all([context.run('1', () => {}), context.run('2', () => LARGE)]);
      const [second, small] = await Promise.all([context.run('3', () => LARGE), context.run('4', () => 4)]);
      return [none === undefined, first === LARGE, second === LARGE, small];
    });
    const run = await path.trigger();
    expect(await run.result()).toEqual([true, true, true, 4]);
    await expectCalls(service, 9);
  });

  large('calls what answers much', async ({ service }) => {
    service.app.plain('/third', () => new Response(LARGE, { headers: { 'content-type': 'text/plain' } }));
    const path = service.workflow(library, '/large', async (context) => {
      const { status, body } = await context.call<string>('call', { url: service.at('/third') });
      await context.run('after', () => {});
      return [status, body === LARGE];
    });
    const run = await path.trigger();
    expect(await run.result()).toEqual([200, true]);
    await expectCalls(service, 4);
    expect(empty(service, '/large')).toEqual([false, true, true, true]);
  });

  large('tells of a large error in full', async ({ service }) => {
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
