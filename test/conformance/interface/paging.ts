/** The paging of lists and its limits, as far as messages have them (contract I 4.4, 8). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';
import type { Json, Subject } from '../support/subject.ts';

/** Publishes `count` messages that wait, so that each has one log entry. */
async function publishMany(server: Subject, count: number): Promise<void> {
  const item = { destination: server.destination('/a'), headers: { 'Upstash-Delay': '1h' } };
  for (let left = count; left > 0; left -= 1000) await server.post('/v2/batch', Array(Math.min(left, 1000)).fill(item));
}

export const paging: Section = {
  title: 'Paging limits',
  statements: [
    statement('I19', 'A page of logs has at most 1000 entries, even if more are requested.', async (server) => {
      await publishMany(server, 1001);
      expect((await server.get('/v2/logs?count=1000')).logs).toHaveLength(1000);
      expect((await server.get('/v2/logs?count=5000')).logs).toHaveLength(1000);
    }),

    statement('I20', 'Without a count, a page of logs has 1000 entries.', async (server) => {
      await publishMany(server, 1001);
      expect((await server.get('/v2/logs')).logs).toHaveLength(1000);
    }),

    statement('I21', 'The cursor of a page leads to the next one; the last page has no cursor.', async (server) => {
      await publishMany(server, 5);
      const first = await server.get('/v2/logs?count=3');
      const second = await server.get(`/v2/logs?count=3&cursor=${encodeURIComponent(first.cursor)}`);
      expect([first.logs.length, second.logs.length]).toEqual([3, 2]);
      expect(second).not.toHaveProperty('cursor');
      const ids = [...first.logs, ...second.logs].map(({ messageId }: Json) => messageId);
      expect(new Set(ids).size).toBe(5);
    }),

    statement('I22', 'Items that arrive during paging do not shift the pages.', async (server) => {
      await publishMany(server, 4);
      const all = (await server.get('/v2/logs')).logs.map(({ messageId }: Json) => messageId);
      const first = await server.get('/v2/logs?count=2');
      server.clock.advance(1);
      await publishMany(server, 3);
      const second = await server.get(`/v2/logs?count=2&cursor=${encodeURIComponent(first.cursor)}`);
      expect([...first.logs, ...second.logs].map(({ messageId }: Json) => messageId)).toEqual(all);
    }),

    statement('I23', 'A count of 0, a count that is not a number and an unknown cursor get 400.', async (server) => {
      for (const query of ['count=0', 'count=-1', 'count=x', 'cursor=x%00y']) {
        expect((await server.ask('GET', `/v2/logs?${query}`)).status, query).toBe(400);
        expect((await server.ask('GET', `/v2/dlq?${query}`)).status, query).toBe(400);
      }
    }),
  ],
};
