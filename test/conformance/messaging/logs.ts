/** What the logs say, and how they are listed (contract M 29.65 to 29.77). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';
import type { Json, Subject } from '../support/subject.ts';

const DELAYED = { 'Upstash-Delay': '1h' };

/** Ids of the messages that a list of logs with `query` speaks of, sorted. */
async function listed(server: Subject, query: string): Promise<string[]> {
  const { logs } = await server.get(`/v2/logs?${query}`);
  const ids: string[] = logs.map(({ messageId }: Json) => messageId);
  return [...new Set(ids)].sort();
}

export const logs: Section = {
  title: 'Logs',
  statements: [
    statement('M65', 'A success on the first attempt logs CREATED, ACTIVE and DELIVERED.', async (server) => {
      server.endpoint.replies('/a', { status: 202 });
      const id = await server.publish('/a');
      expect(await server.finished(id)).toEqual(['CREATED', 'ACTIVE', 'DELIVERED']);
      const statuses = (await server.logs(id)).map(({ responseStatus }: Json) => responseStatus);
      expect(statuses.toSorted()).toEqual([202, undefined, undefined]);
    }),

    statement(
      'M66',
      'A failure without retries logs CREATED, ACTIVE, ERROR and FAILED, with its error.',
      async (server) => {
        server.endpoint.replies('/a', { status: 500 });
        const id = await server.publish('/a', { 'Upstash-Retries': '0' });
        expect(await server.finished(id)).toEqual(['CREATED', 'ACTIVE', 'ERROR', 'FAILED']);
        const { logs } = await server.get('/v2/logs?state=FAILED');
        expect(logs).toMatchObject([{ messageId: id, error: 'the endpoint responded with status 500' }]);
      },
    ),

    statement('M67', 'RETRY has the time of the next attempt, in milliseconds.', async (server) => {
      server.endpoint.replies('/a', { status: 500 });
      const retry = await server.retryPlanned(await server.publish('/a', { 'Upstash-Retry-Delay': '90000' }));
      expect(retry.nextDeliveryTime).toBe(server.clock.nowMs() + 90_000);
    }),

    statement('M68', 'ERROR has the status, the body in base64, and the headers under both names.', async (server) => {
      server.endpoint.replies('/a', { status: 418, headers: { 'X-Why': 'tea' }, body: 'short and stout' });
      const id = await server.publish('/a', { 'Upstash-Retries': '0' });
      await server.finished(id);
      const error = (await server.logs(id)).find(({ state }) => state === 'ERROR');
      expect(error).toMatchObject({ responseStatus: 418, responseHeaders: { 'X-Why': ['tea'] } });
      expect(Buffer.from(error.responseBody, 'base64').toString()).toBe('short and stout');
      expect(error.responseHeader).toEqual(error.responseHeaders);
    }),

    statement('M69', 'Events are listed as events, logs as logs, newest first.', async (server) => {
      const first = await server.publish('/a', DELAYED);
      server.clock.advance(10);
      const second = await server.publish('/a', DELAYED);
      const { events } = await server.get('/v2/events');
      const { logs } = await server.get('/v2/logs');
      expect(events.map(({ messageId }: Json) => messageId)).toEqual([second, first]);
      expect(logs).toEqual(events);
    }),

    statement('M70', 'Following the cursors returns each entry once; the last page has no cursor.', async (server) => {
      const ids = [];
      for (let nth = 0; nth < 5; nth += 1) ids.push(await server.publish('/a', DELAYED)); // all at the same time
      const visited: string[] = [];
      let page = await server.get('/v2/logs?count=2');
      while (true) {
        visited.push(...page.logs.map(({ messageId }: Json) => messageId));
        if (!('cursor' in page)) break;
        page = await server.get(`/v2/logs?count=2&cursor=${encodeURIComponent(page.cursor)}`);
      }
      expect(visited).toEqual(ids.reverse());
    }),

    statement('M71', 'Every filter finds its entries and no others.', async (server) => {
      await server.post('/v2/topics/group/endpoints', { endpoints: [{ url: server.destination('/group') }] });
      const schedule = { 'Upstash-Cron': '* * * * *', 'Upstash-Schedule-Id': 'mine' };
      await server.post(`/v2/schedules/${server.destination('/schedule')}`, undefined, { headers: schedule });
      server.clock.advance(60_000);
      const { headers } = await server.endpoint.arrival('/schedule');
      const scheduled = String(headers['upstash-message-id']);
      await server.finished(scheduled);
      await server.delete('/v2/schedules/mine');

      const plain = await server.publish('http://127.0.0.2:9/plain', DELAYED);
      const labelled = await server.publish('/labelled', { ...DELAYED, 'Upstash-Label': 'mark' });
      const flowControl = { 'Upstash-Flow-Control-Key': 'key', 'Upstash-Flow-Control-Value': 'rate=5' };
      const limited = await server.publish('/limited', { ...DELAYED, ...flowControl });
      const [{ messageId: ofGroup }] = await server.post('/v2/publish/group', undefined, { headers: DELAYED });
      await server.post('/v2/queues', { queueName: 'queue', paused: true });
      const queued = await server.enqueue('queue', '/queued');

      expect(await listed(server, 'state=DELIVERED')).toEqual([scheduled]);
      expect(await listed(server, `messageId=${plain}`)).toEqual([plain]);
      expect(await listed(server, `messageIds=${plain},${labelled}`)).toEqual([plain, labelled].sort());
      expect(await listed(server, `url=${encodeURIComponent(server.destination('/limited'))}`)).toEqual([limited]);
      expect(await listed(server, 'host=127.0.0.2:9')).toEqual([plain]);
      expect(await listed(server, 'path=/labelled')).toEqual([labelled]);
      expect(await listed(server, 'label=mark')).toEqual([labelled]);
      expect(await listed(server, 'queueName=queue')).toEqual([queued]);
      expect(await listed(server, 'topicName=group')).toEqual([ofGroup]);
      expect(await listed(server, 'scheduleId=mine')).toEqual([scheduled]);
      expect(await listed(server, 'flowControlKey=key')).toEqual([limited]);
    }),

    statement('M72', 'Several labels match any of them, in either spelling of the query.', async (server) => {
      const a = await server.publish('/a', { ...DELAYED, 'Upstash-Label': 'a' });
      const b = await server.publish('/a', { ...DELAYED, 'Upstash-Label': 'other,b' });
      await server.publish('/a', { ...DELAYED, 'Upstash-Label': 'c' });
      expect(await listed(server, 'label=a&label=b')).toEqual([a, b].sort());
      expect(await listed(server, 'label=a,b')).toEqual([a, b].sort());
    }),

    statement('M73', 'IN_PROGRESS means ACTIVE, RETRY and ERROR.', async (server) => {
      server.endpoint.replies('/a', { status: 500 });
      await server.retryPlanned(await server.publish('/a'));
      const { logs } = await server.get('/v2/logs?state=IN_PROGRESS');
      expect(logs.map(({ state }: Json) => state)).toEqual(['RETRY', 'ERROR', 'ACTIVE']);
    }),

    statement('M74', 'Dates are in milliseconds, and the range includes both ends.', async (server) => {
      const ids: string[] = [];
      const times: number[] = [];
      for (let nth = 0; nth < 4; nth += 1) {
        server.clock.advance(1);
        times.push(server.clock.nowMs());
        ids.push(await server.publish('/a', DELAYED));
      }
      expect(await listed(server, `fromDate=${times[1]}&toDate=${times[2]}`)).toEqual(ids.slice(1, 3).sort());
    }),

    statement('M75', 'The retry expression is in every entry, under both names.', async (server) => {
      const id = await server.publish('/a', { 'Upstash-Retry-Delay': '7 * retried' });
      await server.finished(id);
      for (const entry of await server.logs(id)) {
        expect([entry.retryDelayExpression, entry.retryDelayExpr], entry.state).toEqual(['7 * retried', '7 * retried']);
      }
    }),

    statement('M76', 'A list of logs ignores unknown query parameters, and names them.', async (server) => {
      const id = await server.publish('/a', DELAYED);
      expect(await listed(server, 'nonsense=1&trimBody=2&groupBy=x')).toEqual([id]);
      const { headers } = await server.ask('GET', '/v2/logs?mesageId=msg_a&state=CREATED');
      expect(headers['waypost-ignored']).toBe('mesageId');
    }),

    statement('M77', 'The canceled state is spelled with one L; a filter may use two.', async (server) => {
      const id = await server.publish('/a', DELAYED);
      await server.delete(`/v2/messages/${id}`);
      const { text } = await server.ask('GET', '/v2/logs?state=CANCELLED');
      expect(text).toContain('"CANCELED"');
      expect(text).not.toContain('CANCELLED');
    }),
  ],
};
