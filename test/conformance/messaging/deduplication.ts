/** Messages that are taken once, and messages that wait (contract M 29.78 to 29.88). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';
import type { ApiResponse, Subject } from '../support/subject.ts';

const DAY_S = 86_400;

function post(server: Subject, to: string, headers: Record<string, string>, body = ''): Promise<ApiResponse> {
  return server.ask('POST', `/v2/publish/${server.destination(to)}`, { headers, body });
}

/** How long after its acceptance a message with these headers is due, in ms. */
async function delayOf(server: Subject, headers: Record<string, string>): Promise<number> {
  const { notBefore, createdAt } = await server.get(`/v2/messages/${await server.publish('/a', headers)}`);
  return notBefore - createdAt;
}

export const deduplication: Section = {
  title: 'Deduplication and delay',
  statements: [
    statement(
      'M78',
      'A second publish with the same deduplication id gets 202 with the first message id.',
      async (server) => {
        const headers = { 'Upstash-Deduplication-Id': 'once' };
        const first = await server.publish('/a', headers);
        server.clock.advance(9 * 60_000);
        const { status, json } = await post(server, '/b', headers);
        expect(status).toBe(202);
        expect(json).toEqual({ messageId: first, url: server.destination('/b'), deduplicated: true });
      },
    ),

    statement('M79', 'A duplicate is neither delivered nor logged.', async (server) => {
      const headers = { 'Upstash-Deduplication-Id': 'once' };
      const id = await server.publish('/a', headers);
      await server.finished(id);
      await post(server, '/a', headers);
      expect((await server.get('/v2/logs')).logs).toHaveLength(3);
      await server.quiet();
      expect(server.endpoint.to('/a')).toHaveLength(1);
    }),

    statement('M80', 'After the window the id can be used again.', async (server) => {
      const headers = { 'Upstash-Deduplication-Id': 'once' };
      const first = await server.publish('/a', headers);
      server.clock.advance(10 * 60_000 + 1);
      const { status, json } = await post(server, '/a', headers);
      expect(status).toBe(200);
      expect(json.messageId).not.toBe(first);
    }),

    statement(
      'M81',
      'With content-based deduplication, a duplicate has the same destination, body, content type and forwarded headers.',
      async (server) => {
        const byContent = { 'Upstash-Content-Based-Deduplication': 'true' };
        const headers = { ...byContent, 'Content-Type': 'text/plain', 'Upstash-Forward-X': 'x' };
        const statusOf = async (to: string, given: Record<string, string>, body: string): Promise<number> =>
          (await post(server, to, given, body)).status;
        expect(await statusOf('/a', headers, 'body')).toBe(200);
        expect(await statusOf('/a', { ...headers, 'Upstash-Retries': '1' }, 'body')).toBe(202);
        expect(await statusOf('/b', headers, 'body')).toBe(200);
        expect(await statusOf('/a', headers, 'other')).toBe(200);
        expect(await statusOf('/a', { ...headers, 'Content-Type': 'text/html' }, 'body')).toBe(200);
        expect(await statusOf('/a', { ...headers, 'Upstash-Forward-X': 'y' }, 'body')).toBe(200);
      },
    ),

    statement('M82', 'A deduplication id with a colon gets 400 with the documented text.', async (server) => {
      const { status, json } = await post(server, '/a', { 'Upstash-Deduplication-Id': 'a:b' });
      expect([status, json.error]).toEqual([400, "DeduplicationId cannot contain ':'"]);
    }),

    statement('M83', 'Content-based deduplication can be requested with True.', async (server) => {
      const headers = { 'Upstash-Content-Based-Deduplication': 'True' };
      expect((await post(server, '/a', headers)).status).toBe(200);
      expect((await post(server, '/a', headers)).status).toBe(202);
    }),

    statement('M84', 'A delayed message is not delivered earlier, and shows when it is due.', async (server) => {
      expect(await delayOf(server, { 'Upstash-Delay': '2s' })).toBe(2000);
      server.clock.advance(1999);
      await server.quiet();
      expect(server.endpoint.to('/a')).toEqual([]);
      server.clock.advance(1);
      await server.endpoint.arrival('/a');
    }),

    statement('M85', 'Not-Before is in seconds and takes precedence over a delay.', async (server) => {
      const notBeforeS = Math.ceil(server.clock.nowMs() / 1000) + 30;
      const headers = { 'Upstash-Not-Before': String(notBeforeS), 'Upstash-Delay': '1h' };
      const id = await server.publish('/a', headers);
      expect((await server.get(`/v2/messages/${id}`)).notBefore).toBe(notBeforeS * 1000);
    }),

    statement('M86', 'The parts of a delay are added up; a value that is not a duration gets 400.', async (server) => {
      expect(await delayOf(server, { 'Upstash-Delay': '1d1h30m' })).toBe((DAY_S + 5400) * 1000);
      const { status, json } = await post(server, '/a', { 'Upstash-Delay': 'abc' });
      expect(status).toBe(400);
      expect(json.error).toContain('Upstash-Delay');
    }),

    statement(
      'M87',
      'A delay above the quota gets an error with the documented text.',
      async (server) => {
        const { status, json } = await post(server, '/a', { 'Upstash-Delay': '8d' });
        expect([status, json.error]).toEqual([412, 'quota maxDelay exceeded, current limit: 604800']);
      },
      { flags: ['--delay-max', '7d'] },
    ),

    statement('M88', 'Enqueueing with a delay or a not-before gets 400.', async (server) => {
      for (const [name, value] of Object.entries({ 'Upstash-Delay': '1s', 'Upstash-Not-Before': '9999999999' })) {
        const target = `/v2/enqueue/queue/${server.destination('/a')}`;
        const { status, json } = await server.ask('POST', target, { headers: { [name]: value } });
        expect(status).toBe(400);
        expect(json.error).toContain(name);
      }
    }),
  ],
};

export const lostDuplicates: Section = {
  title: 'Duplicates of what is never delivered',
  statements: [
    statement(
      'M155',
      'A duplicate of a message that is dead or cancelled is still a duplicate, and the response says so.',
      async (server) => {
        const publish = async (id: string) => (await post(server, '/a', { 'Upstash-Deduplication-Id': id })).json;
        const buried = await server.bury('/a', { 'Upstash-Deduplication-Id': 'dead' });
        const cancelled = await server.publish('/a', { 'Upstash-Deduplication-Id': 'gone', 'Upstash-Delay': '1h' });
        await server.delete(`/v2/messages/${cancelled}`);
        const duplicate = { url: server.destination('/a'), deduplicated: true };
        expect(await publish('dead')).toEqual({ ...duplicate, messageId: buried.messageId, state: 'FAILED' });
        expect(await publish('gone')).toEqual({ ...duplicate, messageId: cancelled, state: 'CANCELED' });
        const waiting = await server.publish('/a', { 'Upstash-Deduplication-Id': 'due', 'Upstash-Delay': '1h' });
        expect(await publish('due')).toEqual({ ...duplicate, messageId: waiting });
      },
    ),
  ],
};
