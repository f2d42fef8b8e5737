/** Messages that say how another one fared (contract M 29.112 to 29.117). */
import { expect } from 'vitest';
import type { Received } from '../support/endpoint.ts';
import { type Section, statement } from '../support/statement.ts';
import type { Json } from '../support/subject.ts';

function payloadOf({ body }: Received): Json {
  return JSON.parse(body.toString());
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

export const callbacks: Section = {
  title: 'Callbacks and failure callbacks',
  statements: [
    statement('M112', 'A callback follows every attempt and reports its outcome.', async (server) => {
      server.endpoint.replies('/a', { status: 500, body: 'broken' }, { status: 201, body: 'fine' });
      const headers = { 'Upstash-Retries': '1', 'Upstash-Retry-Delay': '1000' };
      const id = await server.publish('/a', { ...headers, 'Upstash-Callback': server.destination('/callback') });
      const common = { maxRetries: 1, sourceMessageId: id };
      const first = payloadOf(await server.endpoint.arrival('/callback', 1));
      expect(first).toMatchObject({ ...common, status: 500, body: base64('broken'), retried: 0 });
      expect(first).not.toHaveProperty('dlqId');
      await server.retryPlanned(id);
      server.clock.advance(1000);
      const second = payloadOf(await server.endpoint.arrival('/callback', 2));
      expect(second).toMatchObject({ ...common, status: 201, body: base64('fine'), retried: 1 });
    }),

    statement('M113', 'Header maps in a callback contain arrays, and its times are numbers.', async (server) => {
      server.endpoint.replies('/a', { headers: { 'X-Answer': 'a' } });
      const callback = { 'Upstash-Callback': server.destination('/callback') };
      await server.publish('/a', { 'Upstash-Forward-X-Source': 's', ...callback });
      const payload = payloadOf(await server.endpoint.arrival('/callback'));
      expect(payload.header['X-Answer']).toEqual(['a']);
      expect(payload.sourceHeader).toEqual({ 'X-Source': ['s'] });
      expect([payload.createdAt, payload.notBefore]).toEqual([server.clock.nowMs(), server.clock.nowMs()]);
    }),

    statement('M114', 'A callback is a message with its own id and log.', async (server) => {
      const id = await server.publish('/a', { 'Upstash-Callback': server.destination('/callback') });
      const callbackId = String((await server.endpoint.arrival('/callback')).headers['upstash-message-id']);
      expect(callbackId).toMatch(/^msg_/);
      expect(callbackId).not.toBe(id);
      expect(await server.finished(callbackId)).toEqual(['CREATED', 'ACTIVE', 'DELIVERED']);
    }),

    statement('M115', 'The failure callback is sent once, and its DLQ id can be used immediately.', async (server) => {
      server.endpoint.replies('/a', { status: 500 });
      const id = await server.publish('/a', {
        'Upstash-Retries': '1',
        'Upstash-Retry-Delay': '0',
        'Upstash-Failure-Callback': server.destination('/failure'),
      });
      const { dlqId, sourceMessageId } = payloadOf(await server.endpoint.arrival('/failure'));
      expect(sourceMessageId).toBe(id);
      expect((await server.get(`/v2/dlq/${dlqId}`)).messageId).toBe(id);
      await server.quiet();
      expect(server.endpoint.to('/failure')).toHaveLength(1);
    }),

    statement('M116', 'Options of a callback apply to the callback only.', async (server) => {
      const id = await server.publish('/a', {
        'Upstash-Callback': server.destination('/callback'),
        'Upstash-Callback-Forward-X': 'x',
        'Upstash-Callback-Method': 'PUT',
        'Upstash-Callback-Retries': '1',
      });
      const source = await server.endpoint.arrival('/a');
      const callback = await server.endpoint.arrival('/callback');
      expect([source.method, source.headers['x']]).toEqual(['POST', undefined]);
      expect([callback.method, callback.headers['x']]).toEqual(['PUT', 'x']);
      const retriesOf = async (messageId: string): Promise<number> => (await server.logs(messageId))[0].maxRetries;
      expect(await retriesOf(id)).toBe(3);
      expect(await retriesOf(String(callback.headers['upstash-message-id']))).toBe(1);
    }),

    statement('M117', 'A delay for a callback gets 400.', async (server) => {
      const headers = { 'Upstash-Callback': server.destination('/callback'), 'Upstash-Callback-Delay': '1s' };
      const target = `/v2/publish/${server.destination('/a')}`;
      const { status, json } = await server.ask('POST', target, { headers });
      expect(status).toBe(400);
      expect(json.error).toContain('Upstash-Callback-Delay');
    }),
  ],
};
