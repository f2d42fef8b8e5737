/** Messages that failed for good (contract M 29.129 to 29.137). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';
import type { Json, Subject } from '../support/subject.ts';

/** DLQ ids of all entries that `query` finds, sorted. */
async function listed(server: Subject, query = ''): Promise<string[]> {
  const { messages } = await server.get(`/v2/dlq?${query}`);
  return messages.map(({ dlqId }: Json) => dlqId).sort();
}

export const deadLetters: Section = {
  title: 'DLQ',
  statements: [
    statement('M129', 'A dead message is in the DLQ with its id, its status and the response.', async (server) => {
      server.endpoint.replies('/a', { status: 503, body: 'closed' });
      const id = await server.publish('/a', { 'Upstash-Retries': '0' });
      expect(await server.buried(id)).toMatchObject({
        dlqId: expect.stringMatching(/^\d+-\d+$/),
        messageId: id,
        responseStatus: 503,
        responseBody: 'closed',
      });
    }),

    statement('M130', 'Every filter of the DLQ finds its entries; several values are alternatives.', async (server) => {
      const a = await server.bury('/a', { 'Upstash-Label': 'la' });
      const b = await server.bury('/b', { 'Upstash-Label': 'lb' });
      const flowControl = { 'Upstash-Flow-Control-Key': 'key', 'Upstash-Flow-Control-Value': 'parallelism=9' };
      const limited = await server.bury('/limited', flowControl);
      server.endpoint.replies('/group', { status: 404 });
      const endpoint = { url: server.destination('/group'), name: 'one, two' };
      await server.post('/v2/topics/group/endpoints', { endpoints: [endpoint] });
      const headers = { 'Upstash-Retries': '0' };
      const [{ messageId }] = await server.post('/v2/publish/group', undefined, { headers });
      const ofGroup = await server.buried(messageId);

      const url = encodeURIComponent(server.destination('/b'));
      expect(await listed(server, `messageId=${a.messageId}`)).toEqual([a.dlqId]);
      expect(await listed(server, `url=${url}`)).toEqual([b.dlqId]);
      expect(await listed(server, 'label=la')).toEqual([a.dlqId]);
      expect(await listed(server, 'label=la&label=lb')).toEqual([a.dlqId, b.dlqId].sort());
      expect(await listed(server, 'topicName=group')).toEqual([ofGroup.dlqId]);
      expect(await listed(server, 'endpointName=one,%20two&endpointName=three')).toEqual([ofGroup.dlqId]);
      expect(await listed(server, 'endpointName=one')).toEqual([]);
      expect(await listed(server, 'flowControlKey=key')).toEqual([limited.dlqId]);
      expect(await listed(server, 'responseStatus=404')).toEqual([ofGroup.dlqId]);
      expect(await listed(server, 'responseStatus=404,500')).toHaveLength(4);
      expect(await listed(server, 'responseStatus=999')).toEqual([]);
    }),

    statement('M131', 'An entry can be deleted once; after that it gets 404.', async (server) => {
      const { dlqId } = await server.bury('/a');
      expect((await server.ask('DELETE', `/v2/dlq/${dlqId}`)).status).toBe(200);
      expect((await server.ask('DELETE', `/v2/dlq/${dlqId}`)).status).toBe(404);
    }),

    statement('M132', 'A bulk delete counts the entries that existed.', async (server) => {
      const { dlqId: one } = await server.bury('/a');
      const { dlqId: two } = await server.bury('/b');
      expect(await server.delete(`/v2/dlq?dlqIds=${one}&dlqIds=1-1`)).toEqual({ deleted: 1 });
      expect(await server.delete('/v2/dlq', { dlqIds: [one, two, '1-1'] })).toEqual({ deleted: 1 });
    }),

    statement('M133', 'A bulk delete with an unknown parameter is rejected and deletes nothing.', async (server) => {
      const { dlqId } = await server.bury('/a');
      const { status, json } = await server.ask('DELETE', '/v2/dlq?lable=a');
      expect(status).toBe(400);
      expect(json.error).toContain('lable');
      expect(await listed(server)).toEqual([dlqId]);
    }),

    statement('M134', 'Count limits a bulk delete and a bulk retry.', async (server) => {
      for (const path of ['/a', '/b', '/c']) await server.bury(path);
      expect(await server.delete('/v2/dlq?count=1')).toMatchObject({ deleted: 1, cursor: expect.any(String) });
      for (const path of ['/a', '/b', '/c']) server.endpoint.replies(path);
      const { responses, cursor } = await server.post('/v2/dlq/retry?count=1');
      expect([responses.length, cursor]).toEqual([1, expect.stringMatching(/./)]);
      expect(await listed(server)).toHaveLength(1);
    }),

    statement('M135', 'A retried entry becomes a new message and leaves the DLQ.', async (server) => {
      const { dlqId, messageId } = await server.bury('/a');
      server.endpoint.replies('/a', { status: 200 });
      const { status, json } = await server.ask('POST', `/v2/dlq/retry/${dlqId}`);
      expect(status).toBe(201);
      expect(json.messageId).toMatch(/^msg_/);
      expect(json.messageId).not.toBe(messageId);
      expect((await server.ask('GET', `/v2/dlq/${dlqId}`)).status).toBe(404);
      expect((await server.finished(json.messageId)).at(-1)).toBe('DELIVERED');
    }),

    statement('M136', 'A bulk retry returns the new messages, and an empty cursor at the end.', async (server) => {
      for (const path of ['/a', '/b']) await server.bury(path);
      for (const path of ['/a', '/b']) server.endpoint.replies(path);
      const { status, json } = await server.ask('POST', '/v2/dlq/retry');
      const made = { messageId: expect.stringMatching(/^msg_/) };
      expect([status, json]).toEqual([201, { cursor: '', responses: [made, made] }]);
    }),

    statement('M137', 'A bulk retry that finds nothing gets 201 with an empty list.', async (server) => {
      await server.bury('/a');
      const { status, json } = await server.ask('POST', '/v2/dlq/retry?label=nobodys');
      expect([status, json]).toEqual([201, { cursor: '', responses: [] }]);
    }),
  ],
};
