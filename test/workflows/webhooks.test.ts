/** Webhooks that a run creates and waits for (contract W 14.9). */
import { describe, expect } from 'vitest';
import { LIBRARIES } from './support/library.ts';
import { scenario } from './support/scenario.ts';

describe.each(LIBRARIES)('with $name', (library) => {
  scenario('waits for requests to an URL of its own, which may come first', async ({ service }) => {
    service.app.plain('/caller', async (request) => {
      const url = await request.text();
      const headers = { 'content-type': 'application/json', 'x-hook': 'yes' };
      const { ok, status } = await fetch(url, { method: 'PUT', headers, body: '{"hooked":"🪝"}' });
      return new Response(`${ok} ${status < 300}`);
    });
    const path = service.workflow(library, '/hook', async (context) => {
      const lonely = await context.createWebhook('lonely');
      const nothing = await context.waitForWebhook('wait in vain', lonely, '1s');
      const hook = await context.createWebhook('hook');
      const settings = {
        url: service.at('/caller'),
        method: 'POST' as const,
        body: hook.webhookUrl,
        stringifyBody: false,
      };
      const { body } = await context.call<string>('call', settings);
      const { timeout, request } = await context.waitForWebhook('wait', hook, '30s');
      const json = request && (await request.clone().json());
      const { method, url, headers } = request ?? {};
      return await context.run('last', () => ({
        ...{ nothing: nothing.timeout, called: body, timeout, json, method, header: headers?.get('x-hook') },
        isSameUrl: url === hook.webhookUrl,
      }));
    });
    const run = await path.trigger();
    expect(await run.result()).toEqual({
      ...{ nothing: true, called: 'true true', timeout: false, json: { hooked: '🪝' }, method: 'PUT', header: 'yes' },
      isSameUrl: true,
    });
    expect(service.app.calls('/hook')).toHaveLength(8);
    expect(await run.groups()).toEqual([
      'Initial init: STEP_SUCCESS',
      'CreateWebhook lonely: STEP_SUCCESS',
      'WaitForWebhook wait in vain: STEP_SUCCESS',
      'CreateWebhook hook: STEP_SUCCESS',
      'Call call: STEP_SUCCESS',
      'WaitForWebhook wait: STEP_SUCCESS',
      'Run last: STEP_SUCCESS',
    ]);
  });

  scenario('takes one request for each wait, in order, with and without a body', async ({ service }) => {
    let hookUrl = '';
    const path = service.workflow(library, '/hook', async (context) => {
      const hook = await context.createWebhook('hook');
      hookUrl = hook.webhookUrl;
      const seen: unknown[] = [];
      for (const name of ['one', 'two', 'three']) {
        const { request } = await context.waitForWebhook(name, hook, '1h');
        seen.push([request?.method, new URL(request?.url ?? '').search, await request?.clone().text()]);
      }
      return seen;
    });
    const run = await path.trigger();
    await service.quiet();
    await fetch(`${hookUrl}?n=1`);
    await service.quiet();
    await fetch(`${hookUrl}?n=2`, { method: 'POST', body: 'b' });
    await fetch(`${hookUrl}?n=3`, { method: 'DELETE' });
    expect(await run.result()).toEqual([
      ['GET', '?n=1', ''],
      ['POST', '?n=2', 'b'],
      ['DELETE', '?n=3', ''],
    ]);
    expect(service.app.calls('/hook')).toHaveLength(5);
    expect((await fetch(hookUrl)).status).toBe(404);
  });
});
