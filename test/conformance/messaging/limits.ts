/** What is not shown, and what is too much (contract M 29.148 to 29.151). */
import { createHash } from 'node:crypto';
import { expect } from 'vitest';
import { type Section, statement } from '../support/statement.ts';
import type { Json } from '../support/subject.ts';

function redacted(text: string): string {
  return `REDACTED:${createHash('sha256').update(text).digest('hex')}`;
}

const SECRET = { 'Upstash-Redact-Fields': 'body' };

export const limits: Section = {
  title: 'Redaction and limits',
  statements: [
    statement('M148', 'A redacted body is shown only as a hash, and is delivered unchanged.', async (server) => {
      const headers = { ...SECRET, 'Upstash-Cron': '0 0 1 1 *', 'Upstash-Schedule-Id': 'mine' };
      await server.post(`/v2/schedules/${server.destination('/a')}`, undefined, { headers, body: 'secret' });
      const waiting = await server.publish('/a', { ...SECRET, 'Upstash-Delay': '1h' }, 'secret');
      const dead = await server.bury('/dead', SECRET, 'secret');
      expect((await server.get(`/v2/messages/${waiting}`)).body).toBe(redacted('secret'));
      expect((await server.get('/v2/schedules/mine')).body).toBe(redacted('secret'));
      expect(dead.body).toBe(redacted('secret'));
      for (const { body } of await server.logs(waiting)) {
        expect(Buffer.from(body, 'base64').toString()).toBe(redacted('secret'));
      }
      expect((await server.endpoint.arrival('/dead')).body.toString()).toBe('secret');
    }),

    statement('M149', 'One header can be redacted, or all of them under either name.', async (server) => {
      const headerOf = async (fields: string): Promise<Json> => {
        const id = await server.publish('/a', {
          'Upstash-Delay': '1h',
          'Upstash-Redact-Fields': fields,
          'Upstash-Forward-X-One': '1',
          'Upstash-Forward-X-Two': '2',
        });
        return (await server.get(`/v2/messages/${id}`)).header;
      };
      const hidden = { 'X-One': [redacted('1')], 'X-Two': [redacted('2')] };
      expect(await headerOf('header[x-one]')).toEqual({ ...hidden, 'X-Two': ['2'] });
      expect(await headerOf('headers[X-Two]')).toEqual({ ...hidden, 'X-One': ['1'] });
      expect(await headerOf('header')).toEqual(hidden);
      expect(await headerOf('headers')).toEqual(hidden);
    }),

    statement('M150', 'A redacted message that is retried from the DLQ is delivered unchanged.', async (server) => {
      const headers = { 'Upstash-Redact-Fields': 'body,header', 'Upstash-Forward-X-One': '1' };
      const { dlqId } = await server.bury('/a', headers, 'secret');
      await server.post(`/v2/dlq/retry/${dlqId}`);
      const received = await server.endpoint.arrival('/a', 2);
      expect([received.body.toString(), received.headers['x-one']]).toEqual(['secret', '1']);
    }),

    statement(
      'M151',
      'A daily limit and a burst limit get 429, distinguished by their headers.',
      async (server) => {
        const target = `/v2/publish/${server.destination('/a')}`;
        expect((await server.ask('POST', target)).status).toBe(200);
        const daily = await server.ask('POST', target);
        expect(daily.status).toBe(429);
        expect(daily.headers).toMatchObject({ 'ratelimit-limit': '1', 'ratelimit-remaining': '0' });
        expect(Number(daily.headers['ratelimit-reset'])).toBeGreaterThan(server.clock.nowMs() / 1000);
        expect(daily.headers).not.toHaveProperty('burst-ratelimit-limit');

        expect((await server.ask('GET', '/v2/keys')).status).toBe(200);
        const burst = await server.ask('GET', '/v2/keys');
        expect(burst.status).toBe(429);
        expect(burst.headers).toMatchObject({ 'burst-ratelimit-limit': '1', 'burst-ratelimit-remaining': '0' });
        expect(Number(burst.headers['burst-ratelimit-reset'])).toBeGreaterThan(server.clock.nowMs() / 1000);
        expect(burst.headers).not.toHaveProperty('ratelimit-limit');
      },
      { flags: ['--messages-per-day-max', '1', '--requests-per-second-max', '1'] },
    ),
  ],
};
