/** Publishing, and the message that can be read afterwards (contract M 29.22 to 29.37). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';
import type { Json, Subject } from '../support/subject.ts';

/** A message that waits, so that it can be read at leisure. */
async function waiting(server: Subject, headers: Record<string, string> = {}, body?: string | Buffer): Promise<Json> {
  const id = await server.publish('/a', { 'Upstash-Delay': '1h', ...headers }, body);
  return server.get(`/v2/messages/${id}`);
}

export const publish: Section = {
  title: 'Publish and message object',
  statements: [
    statement('M22', 'A publish to a URL gets 200 with a message id.', async (server) => {
      const { status, json } = await server.ask('POST', `/v2/publish/${server.destination('/a')}`);
      expect(status).toBe(200);
      expect(json.messageId).toMatch(/^msg_[1-9A-HJ-NP-Za-km-z]{28,64}$/);
    }),

    statement('M23', 'The response to a first message has no member about deduplication.', async (server) => {
      const json = await server.post(`/v2/publish/${server.destination('/a')}`);
      expect(Object.keys(json).sort()).toEqual(['messageId', 'url']);
    }),

    statement(
      'M24',
      'A message can be read as soon as it is published, even if it is delivered immediately.',
      async (server) => {
        const id = await server.publish('/a');
        expect((await server.get(`/v2/messages/${id}`)).messageId).toBe(id);
        await server.finished(id);
        expect((await server.get(`/v2/messages/${id}`)).messageId).toBe(id);
      },
    ),

    statement('M25', 'A message always has its six members, with the right types.', async (server) => {
      const message = await waiting(server);
      for (const name of ['messageId', 'url', 'method']) expect(message[name], name).toEqual(expect.any(String));
      for (const name of ['maxRetries', 'notBefore', 'createdAt'])
        expect(message[name], name).toEqual(expect.any(Number));
    }),

    statement('M26', 'A message without a number of retries has 3.', async (server) => {
      expect((await waiting(server)).maxRetries).toBe(3);
    }),

    statement('M27', 'A message without retries shows 0.', async (server) => {
      expect((await waiting(server, { 'Upstash-Retries': '0' })).maxRetries).toBe(0);
    }),

    statement(
      'M28',
      'A number of retries that is not a number gets 400, and the text names the header.',
      async (server) => {
        const headers = { 'Upstash-Retries': 'three' };
        const { status, json } = await server.ask('POST', `/v2/publish/${server.destination('/a')}`, { headers });
        expect(status).toBe(400);
        expect(json.error).toContain('Upstash-Retries');
      },
    ),

    statement('M29', 'More retries than the quota get 412 with the documented text.', async (server) => {
      const headers = { 'Upstash-Retries': '1000000' };
      const { status, json } = await server.ask('POST', `/v2/publish/${server.destination('/a')}`, { headers });
      expect([status, json.error]).toEqual([412, 'quota maxRetries exceeded, current limit: 999']);
    }),

    statement(
      'M30',
      'The header map contains the forwarded headers and the content type, and nothing else.',
      async (server) => {
        const ordinary = { Accept: 'text/html', 'User-Agent': 'me', 'X-Ordinary': 'x' };
        const forwarded = await waiting(server, { ...ordinary, 'Upstash-Forward-My-Header': 'mine' });
        expect(forwarded.header).toEqual({ 'My-Header': ['mine'] });
        const typed = await waiting(server, { ...ordinary, 'Content-Type': 'text/plain' });
        expect(typed.header).toEqual({ 'Content-Type': ['text/plain'] });
      },
    ),

    statement('M31', 'Names in the header map are canonical and values are arrays.', async (server) => {
      const id = await server.post(`/v2/publish/${server.destination('/a')}`, undefined, {
        headers: { 'upstash-delay': '1h', 'uPSTASH-fORWARD-x-aPI-kEY': ['one', 'two'], 'content-TYPE': 'a/b' },
      });
      const { header } = await server.get(`/v2/messages/${id.messageId}`);
      expect(header).toEqual({ 'X-Api-Key': ['one', 'two'], 'Content-Type': ['a/b'] });
    }),

    statement(
      'M32',
      'A text body is shown in body, other bytes in bodyBase64, an empty body in neither.',
      async (server) => {
        const bodyOf = ({ body, bodyBase64 }: Json): Json => ({ body, bodyBase64 });
        expect(bodyOf(await waiting(server, {}, 'grün'))).toEqual({ body: 'grün', bodyBase64: undefined });
        expect(bodyOf(await waiting(server, {}, Buffer.of(0xff, 0)))).toEqual({ body: undefined, bodyBase64: '/wA=' });
        expect(Object.keys(await waiting(server))).not.toEqual(
          expect.arrayContaining([expect.stringContaining('body')]),
        );
      },
    ),

    statement('M33', 'Members without a value are absent.', async (server) => {
      const always = ['messageId', 'url', 'method', 'maxRetries', 'notBefore', 'createdAt'];
      expect(Object.keys(await waiting(server)).sort()).toEqual([...always, 'callerIP', 'callerIp'].sort());
    }),

    statement('M34', 'The requested method is used for the delivery; an unknown method gets 400.', async (server) => {
      await server.publish('/a', { 'Upstash-Method': 'PUT' });
      expect((await server.endpoint.arrival('/a')).method).toBe('PUT');
      const headers = { 'Upstash-Method': 'BREW' };
      const { status, json } = await server.ask('POST', `/v2/publish/${server.destination('/a')}`, { headers });
      expect(status).toBe(400);
      expect(json.error).toContain('Upstash-Method');
    }),

    statement('M35', 'Labels are shown as the first one and as the whole list.', async (server) => {
      const { label, labels } = await waiting(server, { 'Upstash-Label': 'a,b' });
      expect([label, labels]).toEqual(['a', ['a', 'b']]);
    }),

    statement(
      'M36',
      'A body above the maximum is refused and nothing is stored.',
      async (server) => {
        const target = `/v2/publish/${server.destination('/a')}`;
        const { status, json } = await server.ask('POST', target, { body: 'x'.repeat(1001) });
        expect([status, json.error]).toEqual([413, 'quota maxMessageSize exceeded, current limit: 1000']);
        expect(await server.get('/v2/logs')).toMatchObject({ logs: [] });
        expect((await server.ask('POST', target, { body: 'x'.repeat(1000) })).status).toBe(200);
      },
      {
        flags: ['--message-bytes-max', '1000'],
        deviation:
          'Refused with the documented text, but with 413 instead of the unconfirmed 412 of contract M 20.1: ' +
          'that is what proxies and clients know for a body that is too large.',
      },
    ),

    statement('M37', 'An unknown message gets 404, and the text names it.', async (server) => {
      const { status, json } = await server.ask('GET', '/v2/messages/msg_unknown');
      expect([status, json.error]).toEqual([404, 'message msg_unknown not found']);
    }),
  ],
};
