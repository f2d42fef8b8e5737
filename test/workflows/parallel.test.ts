/** Parallel steps of every kind, and the steps after them (contract W 15). */
import { describe, expect } from 'vitest';
import { USER_HEADERS } from './support/app.ts';
import { LIBRARIES } from './support/library.ts';
import { scenario } from './support/scenario.ts';

describe.each(LIBRARIES)('with $name', (library) => {
  scenario('does one of each kind at once', async ({ service }) => {
    const { app, clock } = service;
    app.plain('/third', () => new Response('called'));
    const child = library.create<number, number>((context) => context.run('one', () => context.requestPayload + 1));
    const untilS = clock.nowMs() / 1000 + 30;
    const main = library.create(async (context) => {
      const results = await Promise.all([
        context.run('run', () => 'ran'),
        context.sleep('sleep', 20),
        context.sleepUntil('until', untilS),
        context.call<string>('call', { url: service.at('/third') }),
        context.waitForEvent('wait', 'event', { timeout: '1h' }),
        context.waitForEvent('in vain', 'never', { timeout: '10s' }),
        context.invoke('invoke', { workflow: child, body: 1, headers: USER_HEADERS }),
        context.notify('notify', 'nobody', 'data'),
        context.createWebhook('hook'),
      ]);
      const [ran, , , call, wait, vain, invoked, notified, hook] = results;
      return context.run('join', () => [
        ...[ran, call.status, call.body, wait.eventData, vain.timeout, invoked.body, notified.notifyResponse],
        hook.webhookUrl.startsWith(service.env.QSTASH_URL),
      ]);
    });
    service.workflows(library, '/all/', { main, child });
    const run = await service.triggered(library, '/all/main').trigger();
    await service.until('the wait', async () => (await service.expectOk('GET', '/v2/waiters/event'))[0]);
    await library.notify('event', 'told', service.env);
    expect(await run.result()).toEqual(['ran', 200, 'called', 'told', true, 2, [], true]);
    // The beginning, nine plans and results, the call's answer, and the step after the join.
    expect(app.calls('/all/main')).toHaveLength(1 + 9 + 9 + 1 + 1);
    expect(app.calls('/all/child')).toHaveLength(2);
    expect(await run.groups()).toEqual([
      'Initial init: STEP_SUCCESS',
      `[${[
        ...['Run run', 'SleepFor sleep', 'SleepUntil until', 'Call call', 'Wait wait', 'Wait in vain'],
        ...['Invoke invoke', 'Notify notify', 'CreateWebhook hook'],
      ]
        .map((step) => `${step}: STEP_SUCCESS`)
        .join(', ')}]`,
      'Run join: STEP_SUCCESS',
    ]);
    expect((await run.flat())[0]).toMatch(/^RUN_STARTED (WAITER_ADDED|INVOKED) .* RUN_SUCCESS$/);
  });

  scenario('goes from one group into the next, and into branches of several steps', async ({ service }) => {
    const order: string[] = [];
    const path = service.workflow(library, '/groups', async (context) => {
      const first = await Promise.all([context.run('a', () => 1), context.run('b', () => 2)]);
      const second = await Promise.all(first.map((n) => context.run(`double ${n}`, () => n * 2)));
      await context.run('between', () => {
        order.push(JSON.stringify(second));
      });
      const third = await Promise.all([context.sleep('long', 10), context.sleep('short', 1)]);
      return third.length;
    });
    const run = await path.trigger();
    expect(await run.result()).toBe(2);
    expect(order).toEqual(['[2,4]']);
    expect(service.app.calls('/groups')).toHaveLength(1 + 4 + 4 + 1 + 4);
  });

  scenario('runs a step once, however many branches are delivered at the same time', async ({ service }) => {
    const counts = new Map<number, number>();
    const path = service.workflow(library, '/once', async (context) => {
      const steps = Array.from({ length: 20 }, (_, index) =>
        context.run(`step ${index}`, () => {
          counts.set(index, (counts.get(index) ?? 0) + 1);
        }),
      );
      await Promise.all(steps);
      await context.run('last', () => {
        counts.set(99, (counts.get(99) ?? 0) + 1);
      });
    });
    const run = await path.trigger();
    await run.result();
    expect([...new Set(counts.values())]).toEqual([1]);
    expect(service.app.calls('/once')).toHaveLength(1 + 40 + 1);
  });
});
