/** Waits that end by a notification, by a pending event, or by their deadline (contract W 14.6, 14.7). */
import { describe, expect } from 'vitest';
import { LIBRARIES, LIBRARY, newestClient } from './support/library.ts';
import { scenario } from './support/scenario.ts';

describe.each(LIBRARIES)('with $name', (library) => {
  scenario.for([
    ['an object', { paid: 7, by: '🦦' }],
    ['a text', 'paid'],
    ['nothing', undefined],
  ] as const)('wakes with the event, %s', async ([, eventData], { service }) => {
    const path = service.workflow(library, '/wait', async (context) => {
      const event = await context.waitForEvent('payment', 'paid-7', { timeout: '1d' });
      return [event.timeout, event.eventData ?? null];
    });
    const run = await path.trigger();
    await service.pass(60_000);
    const [waiter] = await service.expectOk('GET', '/v2/waiters/paid-7');
    expect(waiter).toMatchObject({ url: path.url, timeoutUrl: path.url });
    expect(waiter.headers).toMatchObject({ 'Upstash-Workflow-Runid': [run.id], 'Upstash-Workflow-Url': [path.url] });
    expect(waiter.deadline).toBe(Math.floor((service.clock.nowMs() - 60_000) / 1000) + 86_400);
    expect((await run.groups()).at(-1)).toBe('Wait payment: STEP_PROGRESS');

    const notified = await library.notify('paid-7', eventData, service.env);
    expect(notified).toEqual([expect.objectContaining({ waiter, messageId: expect.stringMatching(/^msg_/) })]);
    expect(await run.result()).toEqual([false, eventData ?? null]);
    expect(service.app.calls('/wait')).toHaveLength(2);
    expect(await service.expectOk('GET', '/v2/waiters/paid-7')).toEqual([]);
    expect(await run.flat()).toEqual([
      'RUN_STARTED WAITER_ADDED RUN_SUCCESS',
      'init: CREATED ACTIVE DELIVERED',
      'payment: CREATED ACTIVE DELIVERED',
    ]);
    expect(await run.groups()).toEqual(['Initial init: STEP_SUCCESS', 'Wait payment: STEP_SUCCESS']);
  });

  scenario('wakes when its time is over', async ({ service }) => {
    const wokenMs: number[] = [];
    const path = service.workflow(library, '/wait', async (context) => {
      const short = await context.waitForEvent('short', 'never', { timeout: 30 });
      await context.run('note', () => {
        wokenMs.push(service.clock.nowMs());
      });
      const long = await context.waitForEvent('long', 'never', { timeout: '6h' });
      return [short.timeout, short.eventData ?? null, long.timeout];
    });
    const startMs = service.clock.nowMs();
    const run = await path.trigger();
    expect(await run.result()).toEqual([true, null, true]);
    expect(wokenMs[0]).toBeGreaterThanOrEqual(startMs + 30_000);
    expect(wokenMs[0]).toBeLessThan(startMs + 31_000);
    expect(service.app.calls('/wait')).toHaveLength(4);
    const [, wait] = (await run.log()).steps;
    expect(wait?.steps[0]).toMatchObject({
      ...{ waitEventId: 'never', waitTimeout: true, waitTimeoutDuration: '30s', state: 'STEP_SUCCESS' },
      waitTimeoutDeadline: expect.closeTo(startMs + 30_000, -4),
    });
  });

  scenario('wakes all that wait for an event, with one notification', async ({ service }) => {
    const path = service.workflow<number>(library, '/wait', async (context) => {
      const { eventData } = await context.waitForEvent('go', 'starting-gun', { timeout: '1h' });
      return [context.requestPayload, eventData];
    });
    const runs = [];
    for (let n = 1; n <= 5; n += 1) runs.push(await path.trigger({ body: n }));
    await service.quiet();
    expect(await library.notify('starting-gun', 'bang', service.env)).toHaveLength(5);
    for (const [index, run] of runs.entries()) expect(await run.result()).toEqual([index + 1, 'bang']);
    expect(service.app.calls('/wait')).toHaveLength(10);
    expect(await library.notify('starting-gun', 'late', service.env)).toEqual([]);
  });

  scenario('waits beside calls, for other workflows that notify', async ({ service }) => {
    const { app, env } = service;
    app.plain('/notifier', async (request) => {
      // Answered first: the wait beside the call may not be registered yet.
      notify = async () => library.notify(await request.text(), 'from the client', env);
      return new Response('notifying');
    });
    let notify: () => Promise<unknown> = () => Promise.resolve();
    const other = library.create<{ text: string; object: string }, unknown>(async (context) => {
      for (const [kind, data] of [
        ['text', 'a text'],
        ['object', { an: 'object' }],
      ] as const) {
        await context.sleep(`before ${kind}`, 10);
        const { notifyResponse } = await context.notify(`notify ${kind}`, context.requestPayload[kind], data);
        if (notifyResponse.length === 0) throw new Error(`nobody waits for ${kind}`);
      }
    });
    const main = library.create<string, unknown>(async (context) => {
      const lost = await context.waitForEvent('lost', 'lost-event', { timeout: 1 });
      const events = await context.run('events', () => ({
        client: 'client-event',
        text: 'text-event',
        object: 'object-event',
      }));
      const post = { method: 'POST' as const, stringifyBody: false };
      const [called, byClient] = await Promise.all([
        context.call('call', { url: service.at('/notifier'), body: events.client, ...post }),
        context.waitForEvent('client', events.client, { timeout: '60s' }),
      ]);
      const [started, text] = await Promise.all([
        context.call('start', {
          url: service.at('/events/other'),
          body: JSON.stringify(events),
          headers: USER,
          ...post,
        }),
        context.waitForEvent('text', events.text, { timeout: 60 }),
      ]);
      const object = await context.waitForEvent('object', events.object, { timeout: '60s' });
      await context.sleep('until the other has ended', 10);
      await context.run('last', () => {});
      const { body } = called as { body: unknown };
      return [lost.timeout, body, byClient.eventData, started.status, text.eventData, object.eventData];
    });
    service.workflows(library, '/events/', { main, other });
    const run = await service.triggered(library, '/events/main', { retries: 0 }).trigger();
    await service.until('the wait', async () => (await service.expectOk('GET', '/v2/waiters/client-event'))[0]);
    await notify();
    expect(await run.result()).toEqual([true, 'notifying', 'from the client', 200, 'a text', { an: 'object' }]);
    expect(app.calls('/events/main')).toHaveLength(16);
    // First invocation, beginning, two sleeps and two notifications.
    expect(app.calls('/events/other')).toHaveLength(6);
  });
});

/** For calls of workflows, which have only the headers that they are called with. */
const USER = { 'x-user': 'ann', 'x-trace': '7' };

scenario('finds an event that was sent to its run before it waited, each once and in order', async ({ service }) => {
  const path = service.workflow(LIBRARY, '/wait', async (context) => {
    await context.sleep('first', 60);
    const events: unknown[] = [];
    for (const name of ['one', 'two']) {
      events.push((await context.waitForEvent(name, 'early', { timeout: 60 })).eventData);
    }
    const { timeout } = await context.waitForEvent('three', 'early', { timeout: 60 });
    return [...events, timeout];
  });
  const run = await path.trigger();
  await service.pass(10_000);
  const client = newestClient(service.env);
  await client.notify({ eventId: 'early', eventData: 1, workflowRunId: run.id });
  await client.notify({ eventId: 'early', eventData: { n: 2 }, workflowRunId: run.id });
  expect(await run.result()).toEqual([1, { n: 2 }, true]);
  expect(service.app.calls('/wait')).toHaveLength(5);
});

scenario('notifies from one workflow into another', async ({ service }) => {
  const { env } = service;
  const waiting = service.workflow(LIBRARY, '/waiting', async (context) => {
    return (await context.waitForEvent('wait', 'ready', { timeout: '1h' })).eventData;
  });
  const telling = service.workflow<string>(LIBRARY, '/telling', async (context) => {
    const { notifyResponse } = await context.notify('tell', 'ready', { by: context.requestPayload });
    return notifyResponse.map(({ waiter }) => waiter.url);
  });
  const waits = await waiting.trigger();
  await service.quiet();
  const tells = await telling.trigger({ body: 'me' });
  expect(await tells.result()).toEqual([waiting.url]);
  expect(await waits.result()).toEqual({ by: 'me' });
  expect((await newestClient(env).getWaiters({ eventId: 'ready' })).length).toBe(0);
  expect(service.app.calls('/telling')).toHaveLength(2);
  expect(await tells.groups()).toEqual(['Initial init: STEP_SUCCESS', 'Notify tell: STEP_SUCCESS']);
});

scenario('waits for a week when it does not say for how long', async ({ service }) => {
  const path = service.workflow(LIBRARY, '/wait', (context) => context.waitForEvent('wait', 'event'));
  const run = await path.trigger();
  const startMs = service.clock.nowMs();
  await service.quiet();
  const [, wait] = (await run.log()).steps;
  expect(wait?.steps[0]).toMatchObject({
    ...{ state: 'STEP_PROGRESS', waitTimeoutDuration: '7d' },
    waitTimeoutDeadline: startMs + 7 * 86_400_000,
  });
});
