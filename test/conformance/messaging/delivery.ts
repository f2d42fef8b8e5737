/** The request that an endpoint gets, and what counts as success (contract M 29.38 to 29.50). */
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';

export const delivery: Section = {
  title: 'Delivery',
  statements: [
    statement('M38', 'The body arrives byte for byte.', async (server) => {
      const bytes = Buffer.from(Uint8Array.from({ length: 70_000 }, (_, index) => index % 256));
      await server.publish('/a', {}, bytes);
      expect((await server.endpoint.arrival('/a')).body.equals(bytes)).toBe(true);
    }),

    statement('M39', 'The user agent is the documented one.', async (server) => {
      await server.publish('/a', { 'User-Agent': 'me' });
      expect((await server.endpoint.arrival('/a')).headers['user-agent']).toBe('Upstash-QStash');
    }),

    statement('M40', 'The delivery carries the message id from the response to the publish.', async (server) => {
      const id = await server.publish('/a');
      expect((await server.endpoint.arrival('/a')).headers['upstash-message-id']).toBe(id);
    }),

    statement('M41', 'Deliveries carry the number of retries, from 0.', async (server) => {
      server.endpoint.replies('/a', { status: 500 });
      await server.publish('/a', { 'Upstash-Retries': '2', 'Upstash-Retry-Delay': '0' });
      await server.endpoint.arrival('/a', 3);
      expect(server.endpoint.to('/a').map(({ headers }) => headers['upstash-retried'])).toEqual(['0', '1', '2']);
    }),

    statement(
      'M42',
      'A forwarded header arrives without the prefix; a hop-by-hop header does not arrive.',
      async (server) => {
        const ofConnection = {
          'Upstash-Forward-Host': 'h',
          'Upstash-Forward-Connection': 'c',
          'Upstash-Forward-Te': 't',
        };
        const { status, headers: answered } = await server.ask('POST', `/v2/publish/${server.destination('/a')}`, {
          headers: { ...ofConnection, 'Upstash-Forward-X-Y': 'v' },
        });
        expect([status, answered['waypost-ignored']]).toEqual([200, 'Host, Connection, Te']);
        const { headers } = await server.endpoint.arrival('/a');
        expect([headers['x-y'], headers['te'], headers['host']]).toEqual([
          'v',
          undefined,
          expect.not.stringMatching(/^h$/),
        ]);
      },
    ),

    statement('M43', 'The prefix is removed once.', async (server) => {
      await server.publish('/a', { 'Upstash-Forward-Upstash-Z': 'v' });
      expect((await server.endpoint.arrival('/a')).headers['upstash-z']).toBe('v');
    }),

    statement('M44', 'Ordinary request headers are not delivered, above all not the token.', async (server) => {
      await server.publish('/a', { 'X-Ordinary': 'x', Cookie: 'c=1', Accept: 'text/html' });
      const { headers } = await server.endpoint.arrival('/a');
      for (const name of ['x-ordinary', 'cookie', 'accept', 'authorization'])
        expect(headers, name).not.toHaveProperty(name);
    }),

    statement(
      'M45',
      'On request, all headers are delivered under their own names, but not the token.',
      async (server) => {
        await server.publish('/a', { 'Upstash-Header-Forward': 'true', 'X-Ordinary': 'x' });
        const { headers } = await server.endpoint.arrival('/a');
        expect(headers['x-ordinary']).toBe('x');
        expect(JSON.stringify(headers)).not.toContain(server.token);
      },
    ),

    statement('M46', 'A missing content type is not invented.', async (server) => {
      await server.publish('/a', {}, '{"json":"by looks only"}');
      expect((await server.endpoint.arrival('/a')).headers).not.toHaveProperty('content-type');
    }),

    statement(
      'M47',
      'Only messages of a group carry a group name, and only those of a schedule a schedule id.',
      async (server) => {
        const topic = 'upstash-topic-name';
        const schedule = 'upstash-schedule-id';
        await server.post('/v2/topics/group/endpoints', { endpoints: [{ url: server.destination('/group') }] });
        await server.post('/v2/publish/group');
        await server.publish('/plain');
        const headers = { 'Upstash-Cron': '* * * * *', 'Upstash-Schedule-Id': 'mine' };
        await server.post(`/v2/schedules/${server.destination('/schedule')}`, undefined, { headers });
        server.clock.advance(60_000);
        const [ofGroup, plain, ofSchedule] = await Promise.all(
          ['/group', '/plain', '/schedule'].map((path) => server.endpoint.arrival(path)),
        );
        expect([ofGroup?.headers[topic], ofGroup?.headers[schedule]]).toEqual(['group', undefined]);
        expect([plain?.headers[topic], plain?.headers[schedule]]).toEqual([undefined, undefined]);
        expect([ofSchedule?.headers[topic], ofSchedule?.headers[schedule]]).toEqual([undefined, 'mine']);
      },
    ),

    statement('M48', 'The delivery carries the address of the publisher.', async (server) => {
      await server.publish('/a');
      expect((await server.endpoint.arrival('/a')).headers['upstash-caller-ip']).toBe('127.0.0.1');
    }),

    statement('M49', 'Every 2xx is a success, and every other status is a failure.', async (server) => {
      for (const status of [200, 201, 204, 299, 300, 302, 304, 404, 429, 500, 503]) {
        server.endpoint.replies(`/${status}`, { status, headers: { Location: server.destination('/elsewhere') } });
        const id = await server.publish(`/${status}`, { 'Upstash-Retries': '0' });
        expect((await server.finished(id)).at(-1), `${status}`).toBe(status < 300 ? 'DELIVERED' : 'FAILED');
      }
      expect(server.endpoint.to('/elsewhere')).toEqual([]);
    }),

    statement('M50', 'An attempt fails when its timeout has passed.', async (server) => {
      server.endpoint.hold('/slow');
      const id = await server.publish('/slow', { 'Upstash-Timeout': '1s', 'Upstash-Retries': '0' });
      await server.endpoint.arrival('/slow');
      server.clock.advance(900);
      await server.quiet();
      expect(await server.states(id)).toEqual(['CREATED', 'ACTIVE']);
      server.clock.advance(200);
      expect(await server.finished(id)).toEqual(['CREATED', 'ACTIVE', 'ERROR', 'FAILED']);
      expect((await server.logs(id))[2].error).toMatch(/time/);
    }),
  ],
};
