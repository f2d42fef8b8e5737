/** How the headers and bodies of endpoints' answers are shown (contract M 29.158 and 29.159). */
import { gzipSync } from 'node:zlib';
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';

export const responses: Section = {
  title: 'Responses of endpoints',
  statements: [
    statement(
      'M158',
      'A header value is shown as UTF-8 if its bytes are valid UTF-8, and arrives unchanged.',
      async (server) => {
        const [name, city] = ['Zoë', 'Łódź'].map((text) => Buffer.from(text).toString('latin1'));
        server.endpoint.replies('/a', { status: 500, headers: { 'X-City': city ?? '' } });
        const callback = { 'Upstash-Callback': server.destination('/callback'), 'Upstash-Retries': '0' };
        const id = await server.publish('/a', { 'Upstash-Forward-X-Name': name ?? '', ...callback });
        expect((await server.endpoint.arrival('/a')).headers['x-name']).toBe(name);
        const payload = JSON.parse((await server.endpoint.arrival('/callback')).body.toString());
        expect([payload.header['X-City'], payload.sourceHeader]).toEqual([['Łódź'], { 'X-Name': ['Zoë'] }]);
        await server.finished(id);
        const { logs } = await server.get(`/v2/logs?messageId=${id}&state=ERROR`);
        expect(logs).toMatchObject([{ header: { 'X-Name': ['Zoë'] }, responseHeaders: { 'X-City': ['Łódź'] } }]);
        const { messages } = await server.get(`/v2/dlq?messageId=${id}`);
        expect(messages).toMatchObject([{ header: { 'X-Name': ['Zoë'] }, responseHeader: { 'X-City': ['Łódź'] } }]);
      },
    ),

    statement(
      'M159',
      'The body of a compressed response is shown decoded, with the original headers.',
      async (server) => {
        server.endpoint.replies('/a', {
          status: 503,
          headers: { 'Content-Encoding': 'gzip' },
          body: gzipSync('closed'),
        });
        const dead = await server.buried(await server.publish('/a', { 'Upstash-Retries': '0' }));
        expect(dead).toMatchObject({ responseBody: 'closed', responseHeader: { 'Content-Encoding': ['gzip'] } });
      },
    ),
  ],
};
