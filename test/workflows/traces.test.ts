/** One order is one trace with the unmodified library: the library knows nothing of traces, but the server knows the run. */
import { describe, expect, vi } from 'vitest';
import { USER_HEADERS } from './support/app.ts';
import { LIBRARIES } from './support/library.ts';
import { scenario } from './support/scenario.ts';
import type { Service } from './support/service.ts';

const PARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

/** Adds the trace to the next request to the server, as an instrumented `fetch` does: the library is not asked. */
function traceNextRequest({ env }: Service): void {
  const { fetch } = globalThis;
  const spy = vi.spyOn(globalThis, 'fetch').mockImplementation((input, init) => {
    const { url, headers } = new Request(input, init);
    if (!url.startsWith(env.QSTASH_URL)) return fetch(input, init);
    spy.mockRestore();
    headers.set('traceparent', PARENT);
    headers.set('tracestate', 'vendor=1');
    return fetch(input, { ...init, headers });
  });
}

describe.each(LIBRARIES)('with $name', (library) => {
  scenario('a run is one trace, from its trigger to its failure function', async ({ service }) => {
    const told: unknown[] = [];
    service.app.plain('/shop', () => Response.json({ paid: true }));
    const ship = library.create<unknown, string>((context) => context.run('pack', () => 'packed'));
    const order = library.create<unknown, unknown>(
      async (context) => {
        await context.run('reserve', () => 'reserved');
        await context.call('pay', { url: service.at('/shop'), method: 'POST' });
        await context.sleep('rest', 5);
        await context.invoke('ship', { workflow: ship, body: '', headers: USER_HEADERS });
        await context.waitForEvent('confirm', 'confirmed', { timeout: 60 });
        await context.run('close', () => {
          throw new Error('not today');
        });
        return 'never';
      },
      {
        retries: 0,
        failureFunction: async ({ context }) => {
          told.push(context.headers.get('traceparent'));
          return undefined;
        },
      },
    );
    service.workflows(library, '/orders/', { order, ship });
    traceNextRequest(service);
    const run = await service
      .triggered(library, '/orders/order', { retries: 0, failureFunction: async () => undefined })
      .trigger();
    await service.until('the wait', () => service.app.calls('/orders/ship').length >= 2);
    await service.quiet();
    await library.notify('confirmed', 'yes', service.env);
    expect((await run.finished()).workflowState).toBe('RUN_FAILED');
    expect(told).toEqual([PARENT]);
    const paths = ['/orders/order', '/orders/ship', '/shop'];
    const calls = paths.flatMap((path) => service.app.calls(path));
    for (const { path, headers } of calls) {
      expect([headers.traceparent, headers.tracestate], path).toEqual([PARENT, 'vendor=1']);
    }
    expect(paths.map((path) => service.app.calls(path).length)).toEqual([expect.any(Number), 2, 1]);
    expect(service.app.calls('/orders/order').length).toBeGreaterThanOrEqual(7);
  });
});
