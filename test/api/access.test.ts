/** Checks which token may use which route. The cases come from the route table, so a new route is covered automatically. */
import { Value } from '@sinclair/typebox/value';
import type { InjectOptions } from 'light-my-request';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Route } from '../../src/api/route.ts';
import { openWorld, PUBLISH_ONLY_TOKEN, READ_ONLY_TOKEN, TOKEN, type World } from './support/world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld();
});
afterAll(() => world.close());

const table = await (async () => {
  const probe = await openWorld();
  await probe.close();
  return probe.routes;
})();
const named = table.map((route): [string, Route] => [`${route.method} ${route.path}`, route]);
const isProtected = ([, { access }]: [string, Route]): boolean => access !== 'public';

function requestFor(route: Route, id = 'msg_unknown'): InjectOptions {
  const url = route.path.replace(/:\w+/g, id).replace('*', 'https://example.com/x');
  const request: InjectOptions = { method: route.method, url };
  if (route.path === '/v2/schedules/*') request.headers = { 'upstash-cron': '@daily' };
  if (/^\/v2\/batch(\/|$)/.test(route.path)) request.payload = '[{"destination":"https://example.com/x"}]';
  return request;
}

describe.each(named.filter(isProtected))('%s', (_name, route) => {
  it('returns 401 with JSON when there is no token', async () => {
    const reply = await world.ask({ ...requestFor(route), headers: { authorization: '' } });
    expect(reply.status).toBe(401);
    expect(reply.json.error).toBe('unable to authenticate: invalid token');
  });

  it('returns 401 for a wrong token', async () => {
    for (const authorization of ['Bearer nope', TOKEN, `Basic ${TOKEN}`, `Bearer ${TOKEN}x`, 'Bearer']) {
      const reply = await world.ask({ ...requestFor(route), headers: { authorization } });
      expect([reply.status, reply.json.error]).toEqual([401, 'unable to authenticate: invalid token']);
    }
  });

  it('lets a token in the query decide, whatever Authorization says (contract M 2.1)', async () => {
    const request = requestFor(route);
    const withToken = (token: string): InjectOptions => ({ ...request, url: `${request.url}?qstash_token=${token}` });
    const good = await world.ask({ ...withToken(encodeURIComponent(TOKEN)), headers: { authorization: 'Basic x' } });
    expect(good.status).not.toBe(401);
    const bad = await world.ask(withToken('nope'));
    expect(bad.status).toBe(401);
  });

  it.each([
    ['read-only', READ_ONLY_TOKEN, 'read'],
    ['publish-only', PUBLISH_ONLY_TOKEN, 'publish'],
  ])('lets a %s token do what its access says and nothing else (contract M 2.2)', async (scope, token, access) => {
    const before = await world.countStored();
    const reply = await world.ask({ ...requestFor(route), headers: { authorization: `Bearer ${token}` } });
    if (route.access === access || route.access === 'any') return expect(reply.status).not.toBe(403);
    expect([reply.status, reply.json.error]).toEqual([403, `${scope} token cannot perform this operation`]);
    expect(await world.countStored()).toBe(before);
  });
});

// Behind /v2/schedules/ there is a destination only in what is posted; to other methods it is an id, and has no slash.
// Webhooks may be called with any method.
const takesAny = new Set(table.filter(({ method }) => method === 'PUT').map(({ path }) => path));
describe.each(named.filter(([, { path }]) => path !== '/v2/schedules/*' && !takesAny.has(path)))(
  '%s',
  (_name, route) => {
    it('returns 405 for other methods on its path, and names the allowed ones', async () => {
      const request = requestFor(route);
      const reply = await world.ask({ ...request, method: 'PUT' });
      expect([reply.status, reply.json.error]).toEqual([405, 'Method Not Allowed']);
      expect(reply.headers['allow']).toContain(route.method);
    });
  },
);

it('gives what changes something and the signing keys to full tokens only, publishing excepted', () => {
  const expected = (method: string, path: string): string => {
    if (/^\/(healthz|readyz|openapi\.json|docs)$/.test(path)) return 'public';
    if (path.startsWith('/v2/workflows/hooks/') || path === '/v2/waypost/checkpoints') return 'public';
    if (path === '/v2/waypost/session') return 'any';
    if (/^\/v2\/(publish|enqueue|batch|trigger|wait)(\/|$)/.test(path)) return 'publish';
    return method === 'GET' && !/^\/v2\/(keys|waypost\/tokens)$/.test(path) ? 'read' : 'full';
  };
  for (const { method, path, access } of table) expect([path, access]).toEqual([path, expected(method, path)]);
});

it('asks for the token before it tells which routes exist, and looks at the scope before the route', async () => {
  const unknown = { method: 'POST', url: '/v2/nothing/here' } as const;
  const statuses: [number, string][] = [];
  for (const token of ['nope', READ_ONLY_TOKEN, PUBLISH_ONLY_TOKEN, TOKEN]) {
    const reply = await world.ask({ ...unknown, headers: { authorization: `Bearer ${token}` } });
    statuses.push([reply.status, reply.json.error]);
  }
  expect(statuses).toEqual([
    [401, 'unable to authenticate: invalid token'],
    [403, 'read-only token cannot perform this operation'],
    [403, 'publish-only token cannot perform this operation'],
    [404, 'not found'],
  ]);
});

it('returns responses with the schema of the route table', async () => {
  await world.bury('https://fail.example/shape', { 'upstash-label': 'a,b', 'upstash-forward-x': 'y' });
  for (const [name, route] of named) {
    const reply = await world.ask(requestFor(route));
    if (reply.status >= 400) continue;
    const schema = route.responses[reply.status];
    const problems = schema
      ? [...Value.Errors(schema, reply.json ?? reply.text)].map(({ path, message }) => `${path} ${message}`)
      : [];
    expect({ name, problems }).toEqual({ name, problems: [] });
  }
});
