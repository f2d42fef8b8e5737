/** How a destination is read, and which are refused (contract M 29.12 to 29.21). */
import { expect } from 'vitest';
import { signatureOf } from '../support/signature.ts';
import { type Section, statement } from '../support/statement.ts';

export const destinations: Section = {
  title: 'Destinations',
  statements: [
    statement('M12', 'A destination in the path is requested with its path and query.', async (server) => {
      await server.publish('/a?b=c');
      expect((await server.endpoint.arrival('/a')).target).toBe('/a?b=c');
    }),

    statement('M13', 'A percent-encoded destination is requested as if it were not encoded.', async (server) => {
      await server.publish(encodeURIComponent(server.destination('/a?b=c')));
      expect((await server.endpoint.arrival('/a')).target).toBe('/a?b=c');
    }),

    statement('M14', 'Escapes in a destination arrive unchanged.', async (server) => {
      await server.publish('/a%2Fb%20c?d=%20%2f');
      expect((await server.endpoint.arrival('/a%2Fb%20c')).target).toBe('/a%2Fb%20c?d=%20%2f');
    }),

    statement('M15', "The destination's query keeps its order and its duplicates.", async (server) => {
      await server.publish('/a?b=1&a=2&b=1&c&=d');
      expect((await server.endpoint.arrival('/a')).target).toBe('/a?b=1&a=2&b=1&c&=d');
    }),

    statement('M16', 'Config parameters in the query configure the message and are not delivered.', async (server) => {
      const id = await server.publish('/a?x=1&upstash-retries=1&Upstash-Forward-X-Key=v&y=2');
      const received = await server.endpoint.arrival('/a');
      expect([received.target, received.headers['x-key']]).toEqual(['/a?x=1&y=2', 'v']);
      const [{ url, maxRetries }] = await server.logs(id);
      expect([url, maxRetries]).toEqual([server.destination('/a?x=1&y=2'), 1]);
    }),

    statement('M17', 'A destination without a scheme gets 400 with the documented text.', async (server) => {
      const { status, json } = await server.ask('POST', '/v2/publish/example.com/x');
      expect(status).toBe(400);
      expect(json.error).toBe('invalid destination url: endpoint has invalid scheme, add http:// or https://');
    }),

    statement('M18', 'A publish without a destination gets 400 with the documented text.', async (server) => {
      for (const target of ['/v2/publish/', '/v2/publish']) {
        const { status, json } = await server.ask('POST', target);
        expect([status, json.error]).toEqual([400, 'a non-empty destination must be provided']);
      }
    }),

    statement(
      'M19',
      'With address checks on, a loopback destination gets 400, and the text names the address.',
      async (server) => {
        const { status, json } = await server.ask('POST', '/v2/publish/http://127.0.0.1:9/a');
        expect(status).toBe(400);
        expect(json.error).toContain('invalid destination url: endpoint resolves to a loopback address: 127.0.0.1');
      },
      { flags: ['--allow-destinations', 'none'] },
    ),

    statement(
      'M20',
      'A trailing slash of a destination is kept in the URL, the request and the signature.',
      async (server) => {
        for (const [index, path] of ['/a', '/a/', ''].entries()) {
          const url = `${server.endpoint.origin}${path}`;
          const id = await server.publish(url);
          const received = await server.endpoint.arrival(path || '/');
          expect(received.target, `destination ${index}`).toBe(path || '/');
          expect(signatureOf(received).claims.sub).toBe(url);
          expect((await server.logs(id))[0].url).toBe(url);
        }
      },
    ),

    statement('M21', 'The error of a publish to an unknown group names the group.', async (server) => {
      const { status, json } = await server.ask('POST', '/v2/publish/nobodys');
      expect([status, json.error]).toEqual([404, 'topic nobodys not found']);
    }),
  ],
};
