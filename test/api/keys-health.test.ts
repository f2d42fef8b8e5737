import { afterEach, describe, expect, it } from 'vitest';
import { healthRoutes } from '../../src/api/pages/health.ts';
import type { ApiResponse } from '../../src/api/response.ts';
import type { Services } from '../../src/api/route.ts';
import { StoreUnavailable } from '../../src/engine/store-errors.ts';
import { openWorld, TOKEN, type World } from './support/world.ts';

let world: World;
afterEach(() => world.close());

describe('health', () => {
  it('needs no token', async () => {
    world = await openWorld();
    const headers = { authorization: '' };
    const alive = await world.ask({ method: 'GET', url: '/healthz', headers });
    const ready = await world.ask({ method: 'GET', url: '/readyz', headers });
    expect([alive.status, ready.status]).toEqual([200, 200]);
  });

  it('is not ready while the server starts or shuts down', async () => {
    world = await openWorld({ isReady: () => false });
    expect((await world.ask({ method: 'GET', url: '/readyz' })).status).toBe(503);
    expect((await world.ask({ method: 'GET', url: '/healthz' })).status).toBe(200);
  });

  it('is not ready when the store does not respond', async () => {
    world = await openWorld();
    world.engine.ping = () => Promise.reject(new StoreUnavailable('gone'));
    await world.app.close();
    const { engine } = world;
    const failing = await openWorld({ engine });
    expect((await failing.ask({ method: 'GET', url: '/readyz' })).status).toBe(503);
    await failing.close();
  });

  it('asks the store once for all who ask meanwhile', async () => {
    let asked = 0;
    let respond = (): void => {};
    const ping = () => {
      asked += 1;
      return new Promise<string[]>((resolve) => {
        respond = () => resolve([]);
      });
    };
    const routes = healthRoutes({ engine: { ping }, isReady: () => true } as unknown as Services);
    const handle = routes.find(({ path }) => path === '/readyz')?.handle as () => Promise<ApiResponse>;
    const replies = [handle(), handle(), handle()];
    respond();
    expect((await Promise.all(replies)).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(asked).toBe(1);
    const last = handle();
    respond();
    await last;
    expect(asked).toBe(2);
  });
});

describe('trouble behind the interface', () => {
  it('is 503 with Retry-After when the store cannot write', async () => {
    world = await openWorld();
    world.engine.publish = () => Promise.reject(new StoreUnavailable('disk full at /secret/path'));
    const reply = await world.ask({ method: 'POST', url: '/v2/publish/https://slow.example/' });
    expect([reply.status, reply.headers['retry-after']]).toEqual([503, '1']);
    expect(reply.text).not.toContain('secret');
  });

  it('is 503 with Retry-After while the engine drains', async () => {
    world = await openWorld();
    await world.engine.drain(0);
    const reply = await world.ask({ method: 'POST', url: '/v2/publish/https://slow.example/' });
    expect([reply.status, reply.headers['retry-after']]).toEqual([503, '1']);
  });

  it('is 500 without a word about it when it was not expected, and is logged without the request', async () => {
    world = await openWorld();
    world.engine.publish = () => Promise.reject(new Error('canary-in-an-error'));
    const url = '/v2/publish/https://slow.example/canary-in-a-url?upstash-forward-x=canary-in-a-header';
    const reply = await world.ask({ method: 'POST', url, payload: 'canary-in-a-body' });
    expect([reply.status, reply.text]).toEqual([500, '{"error":"internal server error"}']);
    const [line] = world.logLines.filter(({ event }) => event === 'request_failed');
    expect(line?.fields).toMatchObject({ route: '/v2/publish/*', kind: 'Error' });
    expect(JSON.stringify(world.logLines)).not.toMatch(/canary/);
    expect(JSON.stringify(world.logLines)).not.toContain(TOKEN);
  });

  it('repeats no token and no body in an error', async () => {
    world = await openWorld();
    const headers = { authorization: 'Bearer canary-token' };
    const texts = [
      await world.ask({ method: 'GET', url: '/v2/logs', headers }),
      await world.ask({ method: 'GET', url: '/v2/logs?qstash_token=canary-token' }),
      await world.ask({ method: 'POST', url: '/v2/batch', payload: '[{"body":"canary-body"' }),
      await world.ask({ method: 'POST', url: '/v2/batch', payload: '[{"body":"canary-body"}]' }),
      await world.ask({ method: 'POST', url: '/v2/publish/nowhere', payload: 'canary-body' }),
    ].map(({ text }) => text);
    expect([...texts, JSON.stringify(world.logLines)].join()).not.toContain('canary');
  });
});
