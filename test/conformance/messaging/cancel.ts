/** Messages that are called back (contract M 29.89 to 29.95). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';
import type { Subject } from '../support/subject.ts';

function waiting(server: Subject, to = '/a', headers: Record<string, string> = {}): Promise<string> {
  return server.publish(to, { 'Upstash-Delay': '1h', ...headers });
}

export const cancel: Section = {
  title: 'Cancel',
  statements: [
    statement('M89', 'A cancelled message gets 404 immediately and is never delivered.', async (server) => {
      const id = await waiting(server);
      const { status, json } = await server.ask('DELETE', `/v2/messages/${id}`);
      expect([status, json]).toEqual([200, { cancelled: 1 }]);
      for (const method of ['GET', 'DELETE'])
        expect((await server.ask(method, `/v2/messages/${id}`)).status, method).toBe(404);
      server.clock.advance(2 * 3_600_000);
      await server.quiet();
      expect(server.endpoint.to('/a')).toEqual([]);
    }),

    statement('M90', 'The log shows that the cancel was requested and done.', async (server) => {
      const id = await waiting(server);
      await server.delete(`/v2/messages/${id}`);
      expect(await server.states(id)).toEqual(['CREATED', 'CANCEL_REQUESTED', 'CANCELED']);
    }),

    statement('M91', 'Cancelling an unknown message gets 404.', async (server) => {
      const { status, json } = await server.ask('DELETE', '/v2/messages/msg_unknown');
      expect([status, json.error]).toEqual([404, 'message msg_unknown not found']);
    }),

    statement('M92', 'A bulk cancel counts the messages that existed.', async (server) => {
      const id = await waiting(server);
      expect(await server.delete(`/v2/messages?messageIds=${id},msg_unknown`)).toEqual({ cancelled: 1 });
      expect(await server.delete(`/v2/messages?messageIds=${id},msg_unknown`)).toEqual({ cancelled: 0 });
    }),

    statement('M93', 'A bulk cancel accepts ids in the query and in a JSON body.', async (server) => {
      const ids = [await waiting(server), await waiting(server), await waiting(server)];
      expect(await server.delete(`/v2/messages?messageIds=${ids[0]}`)).toEqual({ cancelled: 1 });
      expect(await server.delete('/v2/messages', { messageIds: ids.slice(1) })).toEqual({ cancelled: 2 });
    }),

    statement(
      'M94',
      'Values of one filter are alternatives, filters are combined with AND, a count takes the oldest, and 100 takes all.',
      async (server) => {
        const a = await waiting(server, '/x', { 'Upstash-Label': 'a' });
        const b = await waiting(server, '/x', { 'Upstash-Label': 'b' });
        await waiting(server, '/y', { 'Upstash-Label': 'b' });
        await waiting(server, '/x', { 'Upstash-Label': 'c' });
        const url = encodeURIComponent(server.destination('/x'));
        expect(await server.delete(`/v2/messages?label=a&label=b&url=${url}`)).toEqual({ cancelled: 2 });
        for (const id of [a, b]) expect((await server.ask('GET', `/v2/messages/${id}`)).status).toBe(404);
        expect(await server.delete('/v2/messages?count=1')).toEqual({ cancelled: 1 });
        await server.post(
          '/v2/batch',
          Array.from({ length: 149 }, () => ({
            destination: server.destination('/x'),
            headers: { 'Upstash-Delay': '1h' },
          })),
        );
        expect(await server.delete('/v2/messages?count=100')).toEqual({ cancelled: 150 });
      },
    ),

    statement('M95', 'A message that waits for a retry can be cancelled.', async (server) => {
      server.endpoint.replies('/a', { status: 500 });
      const id = await server.publish('/a');
      await server.retryPlanned(id);
      expect(await server.delete('/v2/messages')).toEqual({ cancelled: 1 });
      server.clock.advance(60_000);
      await server.quiet();
      expect(server.endpoint.to('/a')).toHaveLength(1);
      expect((await server.states(id)).at(-1)).toBe('CANCELED');
    }),
  ],
};
