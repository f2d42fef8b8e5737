import { describe, expect, it } from 'vitest';
import { NO_BODY } from '../../src/api/response.ts';
import type { Access, Route, RouteMethod } from '../../src/api/route.ts';
import { RouteFinder } from '../../src/api/route-finder.ts';
import { fc } from '../support/fast-check.ts';

function route(method: RouteMethod, path: string, access: Access = 'read'): Route {
  return {
    method,
    path,
    operationId: 'any',
    access,
    summary: '',
    responses: { 200: undefined },
    handle: () => NO_BODY,
  };
}

const finder = new RouteFinder([
  route('GET', '/healthz', 'public'),
  route('GET', '/v2/logs'),
  route('POST', '/v2/publish/*'),
  route('POST', '/v2/enqueue/:queueName/*'),
  route('POST', '/v2/schedules/*'),
  route('GET', '/v2/schedules'),
  route('GET', '/v2/schedules/:scheduleId'),
  route('POST', '/v2/schedules/:scheduleId/pause'),
  route('PATCH', '/v2/schedules/:scheduleId/pause'),
  route('GET', '/v2/messages/:messageId'),
  route('GET', '/v2/messages/:messageId/explain'),
  route('POST', '/v2/flowControl/:flowControlKey/resetRate'),
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

/** What a POST goes to, and with what. */
function posted(target: string): { path: string | undefined; ids: string[]; rawDestination: string; rawQuery: string } {
  const { routes, ids, rawDestination, rawQuery } = finder.find(target, 'POST');
  return { path: routes.get('POST')?.path, ids, rawDestination, rawQuery };
}

describe('routes', () => {
  it.each([
    ['/v2/logs', '/v2/logs', []],
    ['/V2/Logs/', '/v2/logs', []],
    ['/v2/logs///', '/v2/logs', []],
    ['/v2/messages/a%20b', '/v2/messages/:messageId', ['a b']],
    ['/v2/messages/*', '/v2/messages/:messageId', ['*']],
    ['/v2/messages/:messageId', '/v2/messages/:messageId', [':messageId']],
    ['/V2/Messages/msg_AbC', '/v2/messages/:messageId', ['msg_AbC']],
    ['/v2/messages/a%2fb', '/v2/messages/:messageId', ['a/b']],
    ['/v2/messages//explain', '/v2/messages/:messageId/explain', ['']],
    ['/v2/messages/Explain/EXPLAIN/', '/v2/messages/:messageId/explain', ['Explain']],
    ['/v2/messages/%zz', '/v2/messages/:messageId', ['%zz']],
    ['/v2/flowcontrol/Key/RESETRATE', '/v2/flowControl/:flowControlKey/resetRate', ['Key']],
    ['/v2/flowControl/Key/resetRate', '/v2/flowControl/:flowControlKey/resetRate', ['Key']],
    ['/v2/notify/e', '/v2/notify/:eventId', ['e']],
    ['/v2/Notify/Run/Event', '/v2/notify/:workflowRunId/:eventId', ['Run', 'Event']],
    ['/v2/workflows/hooks/u/wfr_%2F/e?x=/', '/v2/workflows/hooks/:userId/:workflowRunId/:eventId', ['u', 'wfr_/', 'e']],
    ['/v2/enqueue/q/https://a.example/v2/x', '/v2/enqueue/:queueName/*', ['q']],
    ['/healthz', '/healthz', []],
    ['http://server:8080/v2/logs/?a=b', '/v2/logs', []],
    ['HTTPS://server/v2/logs', '/v2/logs', []],
  ])('finds %s (5, 6, 8)', (target, path, ids) => {
    expect(found(target, 'POST')).toEqual({ paths: [path], ids });
  });

  it.each([
    ...[
      '/',
      '',
      '//',
      '*',
      'host:443',
      'http://server',
      'http://server?x',
      'xhealthz',
      '/HealthZ',
      '/healthz/',
      '/logs',
    ],
    ...['/v2', '/v2/', '/v2/nothing', '/v2/messages', '/v2/messages/a/b', '/v2/workflows/hooks/u/r', '/v20/Logs/'],
    ...['/v2//logs', '/v2/../v2/logs', '/v2/publishing/X', '/v2/constructor/__proto__', '/v2/*/X', '/v2/enqueue'],
    ...['/v2/enqueue/', '/v2/enqueue//https://h/', '/v2/schedules/https://h/a'],
  ])('finds nothing at %s', (target) => {
    expect(found(target)).toEqual({ paths: [], ids: [] });
  });

  it('takes a fixed word before a parameter, and goes back where that leads nowhere', () => {
    expect(found('/v2/dlq/Retry/7').paths).toEqual(['/v2/dlq/retry/:dlqId']);
    expect(found('/v2/dlq/Retry')).toEqual({ paths: ['/v2/dlq/:dlqId'], ids: ['Retry'] });
  });

  it('asks for a token everywhere below /v2, but where the routes of the path are public', () => {
    const isProtected = (target: string): boolean => finder.find(target, 'GET').isProtected;
    const below = ['/v2', '/V2/', '/v2/x', '/v2/logs', '/v2/workflows/hooks/u/r', '/V2/publish/x', '/v2/enqueue//x'];
    expect(below.map(isProtected)).toEqual(below.map(() => true));
    expect(['/', '/v20', '/healthz', '/v2/workflows/hooks/u/r/e'].map(isProtected)).toEqual([
      false,
      false,
      false,
      false,
    ]);
  });
});

describe('a destination', () => {
  it.each([
    ['/v2/publish/https://example.com/a?b=c', '/v2/publish/*', 'https://example.com/a', 'b=c'],
    ['/v2/publish/https://example.com/', '/v2/publish/*', 'https://example.com/', ''],
    ['/v2/publish/https://example.com', '/v2/publish/*', 'https://example.com', ''],
    ['/v2/publish/http://h/a//b/../c/%2F%20?x=?&y', '/v2/publish/*', 'http://h/a//b/../c/%2F%20', 'x=?&y'],
    ['/v2/publish/https%3A%2F%2Fexample.com', '/v2/publish/*', 'https%3A%2F%2Fexample.com', ''],
    ['/v2/publish/https://example.com/a?', '/v2/publish/*', 'https://example.com/a?', ''],
    ['/v2/publish', '/v2/publish/*', '', ''],
    ['/v2/publish/', '/v2/publish/*', '', ''],
    ['/v2/publish//', '/v2/publish/*', '/', ''],
    ['/V2/Publish/My-Group', '/v2/publish/*', 'My-Group', ''],
    ['http://server/v2/publish/https://h/?q', '/v2/publish/*', 'https://h/', 'q'],
    ['/v2/schedules', '/v2/schedules/*', '', ''],
    ['/v2/Schedules/group', '/v2/schedules/*', 'group', ''],
    ['/v2/schedules/pause', '/v2/schedules/*', 'pause', ''],
    ['/v2/schedules//pause', '/v2/schedules/*', '/pause', ''],
    ['/v2/schedules/a/b/pause', '/v2/schedules/*', 'a/b/pause', ''],
    ['/v2/schedules/https://example.com/a?', '/v2/schedules/*', 'https://example.com/a?', ''],
    ['/v2/schedules/https://example.com/pause', '/v2/schedules/*', 'https://example.com/pause', ''],
    ['/v2/schedules/https%3A%2F%2Fh/pause', '/v2/schedules/*', 'https%3A%2F%2Fh/pause', ''],
  ])('is what stands behind the route, raw: %s (12, 14, 20, 126)', (target, path, rawDestination, rawQuery) => {
    expect(posted(target)).toEqual({ path, ids: [], rawDestination, rawQuery });
  });

  it.each([
    ['/v2/enqueue/My.Q/https://h/', 'My.Q', 'https://h/', ''],
    ['/v2/ENQUEUE/q/group?a', 'q', 'group', 'a'],
    ['/v2/enqueue/q/https://example.com/a?', 'q', 'https://example.com/a?', ''],
    ['/v2/enqueue/q', 'q', '', ''],
    ['/v2/enqueue/q/', 'q', '', ''],
  ])('stands behind a name: %s', (target, name, rawDestination, rawQuery) => {
    expect(posted(target)).toEqual({ path: '/v2/enqueue/:queueName/*', ids: [name], rawDestination, rawQuery });
  });

  it.each([
    ['/v2/Schedules/Id/Pause', 'Id'],
    ['/v2/schedules/a%2Db/pause/', 'a-b'],
  ])('is none where another route of the method is named: %s', (target, id) => {
    expect(posted(target)).toMatchObject({ path: '/v2/schedules/:scheduleId/pause', ids: [id], rawDestination: '' });
  });

  it('is read with the method that has one, or when the path has no other routes', () => {
    expect(found('/v2/Schedules/Scd_1')).toEqual({ paths: ['/v2/schedules/:scheduleId'], ids: ['Scd_1'] });
    expect(found('/v2/schedules/S/pause', 'PATCH').ids).toEqual(['S']);
    expect(found('/v2/publish/https://h/', 'GET').paths).toEqual(['/v2/publish/*']);
  });

  it('loses nothing, whatever it is', () => {
    const text = fc.string({ unit: fc.constantFrom(...'aZ/.%2F:@#&=;\\~é ') });
    fc.assert(
      fc.property(text, text, (destination, query) => {
        const { rawDestination, rawQuery } = finder.find(`/v2/publish/${destination}?${query}`, 'POST');
        const kept = query === '' ? `${destination}?` : destination;
        expect({ rawDestination, rawQuery }).toEqual({ rawDestination: kept, rawQuery: query });
      }),
    );
  });
});

it('finds its way through any target without an error', () => {
  fc.assert(
    fc.property(fc.string(), fc.constantFrom('', '/', '/v2/', '/v2/schedules/', 'http://'), (text, start) => {
      finder.find(start + text, 'POST');
    }),
  );
});
