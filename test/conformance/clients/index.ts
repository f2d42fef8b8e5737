/** Differences between the clients for JavaScript, Python and Go that no other statement covers (contract M 23). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';

const differences: Section = {
  title: 'What clients do differently',
  statements: [
    statement(
      'C1',
      'A DLQ entry can be retried by its id in the path, in the query, or in a JSON body.',
      async (server) => {
        const ids: string[] = [];
        for (const path of ['/1', '/2', '/3']) ids.push((await server.bury(path)).dlqId);
        const made = { messageId: expect.stringMatching(/^msg_/) };
        expect(await server.post(`/v2/dlq/retry/${ids[0]}`)).toEqual(made);
        expect(await server.post(`/v2/dlq/retry?dlqIds=${ids[1]}`)).toEqual({ cursor: '', responses: [made] });
        expect(await server.post('/v2/dlq/retry', { dlqIds: [ids[2]] })).toEqual({ cursor: '', responses: [made] });
      },
    ),

    statement(
      'C2',
      'Filters of a bulk action are read from a JSON body, as single values or arrays.',
      async (server) => {
        for (const label of ['a', 'b', 'c'])
          await server.publish('/a', { 'Upstash-Delay': '1h', 'Upstash-Label': label });
        expect(await server.delete('/v2/messages', { label: 'a' })).toEqual({ cancelled: 1 });
        expect(await server.delete('/v2/messages', { label: ['b', 'c'] })).toEqual({ cancelled: 2 });
      },
    ),

    statement('C3', 'Keys can be rotated under both paths.', async (server) => {
      const { next } = await server.get('/v2/keys');
      const once = await server.post('/v2/rotate');
      const twice = await server.post('/v2/keys/rotate');
      expect([once.current, twice.current]).toEqual([next, once.next]);
    }),

    statement('C4', 'Headers of a batch item are strings or arrays of strings.', async (server) => {
      const destination = server.destination('/a');
      const [one, two] = await server.post('/v2/batch', [
        { destination, headers: { 'upstash-delay': '1h', 'Upstash-Forward-X': 'x' } },
        { destination, headers: { 'Upstash-Delay': ['1h'], 'Upstash-Forward-X': ['x', 'y'] } },
      ]);
      expect((await server.get(`/v2/messages/${one.messageId}`)).header).toEqual({ X: ['x'] });
      expect((await server.get(`/v2/messages/${two.messageId}`)).header).toEqual({ X: ['x', 'y'] });
    }),

    statement('C5', "The caller's address has both spellings.", async (server) => {
      const id = await server.publish('/a', { 'Upstash-Delay': '1h' });
      const both = { callerIP: '127.0.0.1', callerIp: '127.0.0.1' };
      expect(await server.get(`/v2/messages/${id}`)).toMatchObject(both);
      expect((await server.logs(id))[0]).toMatchObject(both);
      expect(await server.bury('/b')).toMatchObject(both);
    }),

    statement('C6', 'The parts of a flow-control value may have spaces between them.', async (server) => {
      const value = 'parallelism=3, rate=4, period=2s';
      const headers = { 'Upstash-Flow-Control-Key': 'key', 'Upstash-Flow-Control-Value': value };
      const id = await server.publish('/a', { 'Upstash-Delay': '1h', ...headers });
      expect(await server.get(`/v2/messages/${id}`)).toMatchObject({ parallelism: 3, rate: 4, period: 2 });
    }),

    statement(
      'C7',
      'Our own header prefix configures and is delivered, and the signature names it.',
      async (server) => {
        const id = await server.publish('/a', { 'Waypost-Retries': '1', 'Waypost-Forward-X': 'x' });
        const { headers } = await server.endpoint.arrival('/a');
        expect([headers['waypost-message-id'], headers['waypost-retried'], headers['x']]).toEqual([id, '0', 'x']);
        expect(Object.keys(headers).filter((name) => name.startsWith('upstash-'))).toEqual([]);
        const [, claims = ''] = String(headers['waypost-signature']).split('.');
        expect(JSON.parse(Buffer.from(claims, 'base64url').toString()).iss).toBe('Waypost');
      },
    ),

    statement('C8', 'A page of logs has 1,000 entries unless the request names a count.', async (server) => {
      const item = { destination: server.destination('/a'), headers: { 'Upstash-Delay': '1h' } };
      await server.post('/v2/batch', Array(1_000).fill(item));
      await server.post('/v2/batch', [item]);
      const { logs, cursor } = await server.get('/v2/logs');
      expect([logs.length, (await server.get(`/v2/logs?cursor=${cursor}`)).logs.length]).toEqual([1_000, 1]);
    }),

    statement('C9', 'An unknown option has no effect, and the response names it.', async (server) => {
      const destination = server.destination('/a');
      const headers = { 'Upstash-Delay': '1h', 'Upstash-Retires': '5' };
      const { json, headers: one } = await server.ask('POST', `/v2/publish/${destination}`, { headers });
      expect((await server.get(`/v2/messages/${json.messageId}`)).maxRetries).toBe(3);
      const batch = JSON.stringify([{ destination }, { destination, headers }]);
      const { headers: several } = await server.ask('POST', '/v2/batch', { body: batch });
      expect([one, several].map((answer) => answer['waypost-ignored'])).toEqual([
        'Upstash-Retires',
        'Upstash-Retires;item=1',
      ]);
    }),
  ],
};

export const CLIENTS: readonly Section[] = [differences];
