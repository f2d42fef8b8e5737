import { describe, expect, it } from 'vitest';
import { NO_BODY } from '../../src/api/answer.ts';
import type { Access, Route, RouteMethod } from '../../src/api/route.ts';
import { RouteFinder } from '../../src/api/routes.ts';

function route(method: RouteMethod, path: string, access: Access = 'read'): Route {
  return { method, path, operationId: 'any', access, summary: '', answers: { 200: undefined }, handle: () => NO_BODY };
}

const finder = new RouteFinder([
  route('GET', '/v2/logs'),
  route('POST', '/v2/publish/*'),
  route('POST', '/v2/enqueue/:queueName/*'),
  route('GET', '/v2/messages/:messageId'),
  route('GET', '/v2/messages/:messageId/explain'),
  route('POST', '/v2/dlq/retry/:dlqId'),
  route('DELETE', '/v2/dlq/:dlqId'),
  route('POST', '/v2/notify/:eventId'),
  route('POST', '/v2/notify/:workflowRunId/:eventId'),
  route('GET', '/v2/workflows/hooks/:userId/:workflowRunId/:eventId', 'public'),
]);

function found(target: string, method = 'GET'): { paths: string[]; ids: string[] } {
  const { routes, ids } = finder.find(target, method);
  return { paths: [...routes.values()].map(({ path }) => path), ids };
}

describe('routes', () => {
  it.each([
    ['/v2/logs', '/v2/logs', []],
    ['/V2/Logs/', '/v2/logs', []],
    ['/v2/messages/a%20b', '/v2/messages/:messageId', ['a b']],
    ['/v2/messages/*', '/v2/messages/:messageId', ['*']],
    ['/v2/messages//explain', '/v2/messages/:messageId/explain', ['']],
    ['/v2/messages/%zz', '/v2/messages/:messageId', ['%zz']],
    ['/v2/notify/e', '/v2/notify/:eventId', ['e']],
    ['/v2/Notify/Run/Event', '/v2/notify/:workflowRunId/:eventId', ['Run', 'Event']],
    ['/v2/workflows/hooks/u/wfr_%2F/e?x=/', '/v2/workflows/hooks/:userId/:workflowRunId/:eventId', ['u', 'wfr_/', 'e']],
    ['/v2/enqueue/q/https://a.example/v2/x', '/v2/enqueue/:queueName/*', ['q']],
  ])('finds %s', (target, path, ids) => {
    expect(found(target, 'POST')).toEqual({ paths: [path], ids });
  });

  it.each(['/', '/v2', '/v2/nothing', '/v2/messages', '/v2/messages/a/b', '/v2/workflows/hooks/u/r', '/logs'])(
    'finds nothing at %s',
    (target) => {
      expect(found(target)).toEqual({ paths: [], ids: [] });
    },
  );

  it('takes a fixed word before a parameter, and goes back where that leads nowhere', () => {
    expect(found('/v2/dlq/retry/7').paths).toEqual(['/v2/dlq/retry/:dlqId']);
    expect(found('/v2/dlq/retry')).toEqual({ paths: ['/v2/dlq/:dlqId'], ids: ['retry'] });
  });

  it('asks for a token everywhere below /v2, but where the routes of the path are public', () => {
    const isProtected = (target: string): boolean => finder.find(target, 'GET').isProtected;
    expect(['/v2', '/v2/x', '/v2/logs', '/v2/workflows/hooks/u/r'].map(isProtected)).toEqual([true, true, true, true]);
    expect(['/', '/healthz', '/v2/workflows/hooks/u/r/e'].map(isProtected)).toEqual([false, false, false]);
  });
});
