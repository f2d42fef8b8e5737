/** When a failed message is retried (contract M 29.51 to 29.64, 29.152). */
import { expect } from 'vitest';
import type { Millis } from '../../../src/engine/model.ts';
import type { Reply } from '../support/endpoint.ts';
import { type Section, statement } from '../support/statement.ts';
import type { Subject } from '../support/subject.ts';

interface Failure {
  headers?: Record<string, string>;
  reply?: Reply;
  /** How many retries to wait for. */
  retries?: number;
}

/** Publishes to an endpoint that fails, and answers how long after each failure the next attempt was planned. */
async function delays(server: Subject, { headers = {}, reply = {}, retries = 1 }: Failure): Promise<Millis[]> {
  const path = server.endpoint.newPath();
  server.endpoint.replies(path, { status: 500, ...reply });
  const id = await server.publish(path, { 'Upstash-Retries': String(retries), ...headers });
  const delays: Millis[] = [];
  for (let nth = 1; nth <= retries; nth += 1) {
    const { time, nextDeliveryTime } = await server.retryPlanned(id, nth);
    delays.push(nextDeliveryTime - time);
    server.clock.advanceTo(nextDeliveryTime);
    const attempt = await server.endpoint.arrival(path, nth + 1);
    expect(attempt.atMs).toBe(nextDeliveryTime);
  }
  return delays;
}

/** `Sun, 06 Nov 1994 08:49:37 GMT`, in parts: weekday, day, month, year, time. */
function partsOf(date: Date): string[] {
  return date.toUTCString().replace(',', '').split(' ');
}

const imfDate = (date: Date): string => date.toUTCString();

function rfc850Date(date: Date): string {
  const [, day, month, year = '', time] = partsOf(date);
  const weekday = date.toLocaleDateString('en', { weekday: 'long', timeZone: 'UTC' });
  return `${weekday}, ${day}-${month}-${year.slice(2)} ${time} GMT`;
}

function asctimeDate(date: Date): string {
  const [weekday, day, month, year, time] = partsOf(date);
  return `${weekday} ${month} ${String(Number(day)).padStart(2)} ${time} ${year}`;
}

const DEFAULT_S = [12, 148, 1808, 22_026, 86_400];

export const retries: Section = {
  title: 'Retries',
  statements: [
    statement('M51', 'By default the first retry starts 12 s after the failure.', async (server) => {
      server.endpoint.replies('/a', { status: 500 });
      await server.retryPlanned(await server.publish('/a'));
      server.clock.advance(11_000);
      await server.quiet();
      expect(server.endpoint.to('/a')).toHaveLength(1);
      server.clock.advance(2_000);
      await server.endpoint.arrival('/a', 2);
    }),

    statement('M52', 'By default retries wait 12, 148, 1808, 22026 and 86400 s.', async (server) => {
      const waits = await delays(server, { retries: 5 });
      for (const [index, waitMs] of waits.entries()) {
        expect(Math.abs(waitMs / 1000 - (DEFAULT_S[index] ?? 0)), `retry ${index + 1}`).toBeLessThan(1);
      }
    }),

    statement('M53', 'A constant expression gives the same delay before each retry.', async (server) => {
      const headers = { 'Upstash-Retry-Delay': '1000' };
      expect(await delays(server, { headers, retries: 3 })).toEqual([1000, 1000, 1000]);
    }),

    statement('M54', 'An expression can use the number of previous retries.', async (server) => {
      const headers = { 'Upstash-Retry-Delay': '1000 * (1 + retried)' };
      expect(await delays(server, { headers, retries: 3 })).toEqual([1000, 2000, 3000]);
    }),

    statement('M55', 'Every function of the expressions is available.', async (server) => {
      const milliseconds = {
        'pow(2, retried) * 1000': 1000,
        'max(1, 2000, retried)': 2000,
        'min(500, 1000)': 500,
        'sqrt(10000)': 100,
        'abs(0 - 300)': 300,
        'exp(retried) * 7': 7,
        'floor(1.9)': 1,
        'ceil(1.1)': 2,
        'round(2.5)': 3,
      };
      for (const [expression, delayMs] of Object.entries(milliseconds)) {
        expect(await delays(server, { headers: { 'Upstash-Retry-Delay': expression } }), expression).toEqual([delayMs]);
      }
    }),

    statement('M56', 'A malformed expression gets 400, and the text names the header.', async (server) => {
      for (const expression of ['1000 *', 'pow(1)', 'unknown(1)', 'RETRIED']) {
        const headers = { 'Upstash-Retry-Delay': expression };
        const { status, json } = await server.ask('POST', `/v2/publish/${server.destination('/a')}`, { headers });
        expect(status, expression).toBe(400);
        expect(json.error).toContain('Upstash-Retry-Delay');
      }
    }),

    statement('M57', 'The expression is shown unchanged.', async (server) => {
      const headers = { 'Upstash-Delay': '1h', 'Upstash-Retry-Delay': '1000*  retried' };
      const id = await server.publish('/a', headers);
      expect((await server.get(`/v2/messages/${id}`)).retryDelayExpression).toBe('1000*  retried');
    }),

    statement('M58', 'Retry-After: 0 or a date in the past does not change the planned delay.', async (server) => {
      const after = (value: string): Reply => ({ headers: { 'Retry-After': value } });
      expect(await delays(server, { reply: after('0'), retries: 2 })).toEqual([12_000, 148_000]);
      const past = after(new Date(server.clock.nowMs() - 3_600_000).toUTCString());
      expect(await delays(server, { reply: past, headers: { 'Upstash-Retry-Delay': '500' } })).toEqual([500]);
    }),

    statement('M59', 'Retry-After may be seconds, a duration, or a date in any HTTP form.', async (server) => {
      const after = (value: string): Failure => ({ reply: { headers: { 'Retry-After': value } } });
      expect(await delays(server, after('5'))).toEqual([5000]);
      expect(await delays(server, after('5s'))).toEqual([5000]);
      for (const form of [imfDate, rfc850Date, asctimeDate]) {
        const [untilDate = 0] = await delays(server, after(form(new Date(server.clock.nowMs() + 5000))));
        expect(untilDate, form.name).toBeGreaterThan(3999); // a date has whole seconds
        expect(untilDate, form.name).toBeLessThanOrEqual(5000);
      }
    }),

    statement('M60', 'The three rate limit headers work like Retry-After.', async (server) => {
      for (const name of ['X-RateLimit-Reset', 'X-RateLimit-Reset-Requests', 'X-RateLimit-Reset-Tokens']) {
        expect(await delays(server, { reply: { headers: { [name]: '1m5s' } } }), name).toEqual([65_000]);
      }
    }),

    statement('M61', 'A Retry-After of more than a day means a day.', async (server) => {
      expect(await delays(server, { reply: { headers: { 'Retry-After': '172800' } } })).toEqual([86_400_000]);
    }),

    statement(
      'M62',
      'Status 489 with the header of its kind makes a message dead after one attempt.',
      async (server) => {
        server.endpoint.replies('/a', { status: 489, headers: { 'Upstash-NonRetryable-Error': 'true' } });
        const id = await server.publish('/a');
        expect(await server.finished(id)).toEqual(['CREATED', 'ACTIVE', 'ERROR', 'FAILED']);
        expect((await server.buried(id)).responseStatus).toBe(489);
      },
    ),

    statement('M63', 'Status 489 alone is retried.', async (server) => {
      expect(await delays(server, { reply: { status: 489 } })).toEqual([12_000]);
    }),

    statement('M64', 'A message that always fails is attempted one time more than it has retries.', async (server) => {
      server.endpoint.replies('/a', { status: 500 });
      const id = await server.publish('/a', { 'Upstash-Retries': '2', 'Upstash-Retry-Delay': '0' });
      expect((await server.finished(id)).at(-1)).toBe('FAILED');
      expect(server.endpoint.to('/a')).toHaveLength(3);
    }),
  ],
};

export const forward: Section = {
  title: 'Attempts moved forward',
  statements: [
    statement(
      'M152',
      'A message that waits for its delay or a retry can be attempted immediately on request; it counts as the planned attempt.',
      async (server) => {
        server.endpoint.replies('/a', { status: 500 });
        const id = await server.publish('/a', { 'Upstash-Delay': '1h', 'Upstash-Retries': '1' });
        const retry = async () => (await server.ask('POST', `/v2/messages/${id}/retry`)).status;
        expect(await retry()).toBe(200);
        await server.endpoint.arrival('/a', 1);
        await server.retryPlanned(id);
        expect(await retry()).toBe(200);
        const { headers } = await server.endpoint.arrival('/a', 2);
        expect(headers['upstash-retried']).toBe('1');
        await server.finished(id);
        expect(await retry()).toBe(404);
      },
    ),
  ],
};
