/** Who may ask, what is refused, and the version (contract I 5, 7, 9). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';

export const access: Section = {
  title: 'Authentication, errors and versioning',
  statements: [
    statement('I24', 'Every operation requires a bearer token.', async (server) => {
      const operations = ['POST /v2/queues/q/resume', 'GET /v2/dlq/1-1', 'GET /v2/flowControl/', 'GET /v2/logs'];
      for (const operation of operations) {
        const [method = '', target = ''] = operation.split(' ');
        for (const authorization of ['', 'Bearer', 'Bearer wrong', `Basic ${server.token}`]) {
          const answer = await server.ask(method, target, { token: null, headers: { authorization } });
          expect(answer.status, `${operation} with "${authorization}"`).toBe(401);
        }
      }
    }),

    statement('I25', 'The scheme is case-insensitive, and spaces around the token are ignored.', async (server) => {
      const headers = { authorization: `bEARER   ${server.token} ` };
      expect((await server.ask('GET', '/v2/logs', { token: null, headers })).status).toBe(200);
    }),

    statement('I26', 'All operations are under /v2, and nothing is elsewhere.', async (server) => {
      for (const path of ['/logs', '/v1/logs', '/v3/logs', '/dlq/1-1', '/flowControl/']) {
        expect((await server.ask('GET', path)).status, path).toBe(404);
      }
    }),

    statement('I27', 'A wrong method gets 405 with the allowed ones.', async (server) => {
      const { status, headers } = await server.ask('PUT', '/v2/dlq');
      expect(status).toBe(405);
      expect(headers.allow?.split(', ').sort()).toEqual(['DELETE', 'GET']);
    }),

    statement('I28', 'An empty list is an empty array without a cursor.', async (server) => {
      expect(await server.get('/v2/dlq')).toEqual({ messages: [] });
      expect(await server.get('/v2/events')).toEqual({ events: [] });
    }),
  ],
};
