/** Many endpoints under one name, many messages in one request (contract M 29.105 to 29.111). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';
import type { Subject } from '../support/subject.ts';

/** Makes the group `group` of these paths of the endpoint. */
function makeGroup(server: Subject, ...paths: string[]): Promise<unknown> {
  const endpoints = paths.map((path) => ({ url: server.destination(path) }));
  return server.post('/v2/topics/group/endpoints', { endpoints });
}

export const groups: Section = {
  title: 'URL groups and batch',
  statements: [
    statement('M105', 'A publish to a group returns one id per endpoint, and delivers to each.', async (server) => {
      await makeGroup(server, '/a', '/b');
      const published = await server.post('/v2/publish/group');
      expect(published).toEqual([
        { messageId: expect.stringMatching(/^msg_/), url: server.destination('/a') },
        { messageId: expect.stringMatching(/^msg_/), url: server.destination('/b') },
      ]);
      expect(published[0].messageId).not.toBe(published[1].messageId);
      await server.endpoint.arrival('/a');
      await server.endpoint.arrival('/b');
    }),

    statement('M106', 'Adding an endpoint under an existing name changes its URL.', async (server) => {
      for (const path of ['/old', '/new']) {
        await server.post('/v2/topics/group/endpoints', {
          endpoints: [{ name: 'one', url: server.destination(path) }],
        });
      }
      const { endpoints } = await server.get('/v2/topics/group');
      expect(endpoints).toEqual([{ name: 'one', url: server.destination('/new') }]);
    }),

    statement('M107', 'Removing the last endpoint removes the group.', async (server) => {
      await makeGroup(server, '/a', '/b');
      const endpoint = (path: string) => ({ endpoints: [{ url: server.destination(path) }] });
      await server.delete('/v2/topics/group/endpoints', endpoint('/a'));
      expect((await server.get('/v2/topics/group')).endpoints).toHaveLength(1);
      await server.delete('/v2/topics/group/endpoints', endpoint('/b'));
      expect((await server.ask('GET', '/v2/topics/group')).status).toBe(404);
    }),

    statement(
      'M108',
      'The default headers of a group apply to publishes to it, unless the request has its own.',
      async (server) => {
        await makeGroup(server, '/a');
        const body = JSON.stringify({ headers: { 'Upstash-Retries': ['1'], 'Upstash-Delay': '1h' } });
        expect((await server.ask('PATCH', '/v2/topics/group', { body })).status).toBe(200);
        const retriesOf = async (headers: Record<string, string>): Promise<number> => {
          const [{ messageId }] = await server.post('/v2/publish/group', undefined, { headers });
          return (await server.get(`/v2/messages/${messageId}`)).maxRetries;
        };
        expect(await retriesOf({})).toBe(1);
        expect(await retriesOf({ 'Upstash-Retries': '2' })).toBe(2);
      },
    ),

    statement('M109', 'A batch response has the order of its items, with an array for a group.', async (server) => {
      await makeGroup(server, '/a', '/b');
      const items = [
        { destination: server.destination('/1') },
        { destination: 'group' },
        { destination: server.destination('/2') },
      ];
      const [one, group, two] = await server.post('/v2/batch', items);
      expect([one.url, two.url]).toEqual([server.destination('/1'), server.destination('/2')]);
      expect(group.map(({ url }: { url: string }) => url)).toEqual([
        server.destination('/a'),
        server.destination('/b'),
      ]);
    }),

    statement('M110', 'One invalid item rejects the whole batch, and nothing is created.', async (server) => {
      const items = [{ destination: server.destination('/a') }, { destination: 'not/a/destination' }];
      expect((await server.ask('POST', '/v2/batch', { body: JSON.stringify(items) })).status).toBe(400);
      expect((await server.get('/v2/logs')).logs).toEqual([]);
    }),

    statement('M111', 'Items of a batch with a queue keep the order of the queue.', async (server) => {
      const release = server.endpoint.hold('/a');
      const items = ['/a', '/b'].map((path) => ({ destination: server.destination(path), queue: 'queue' }));
      await server.post('/v2/batch', items);
      await server.endpoint.arrival('/a');
      await server.quiet();
      expect(server.endpoint.to('/b')).toEqual([]);
      release();
      await server.endpoint.arrival('/b');
    }),
  ],
};
