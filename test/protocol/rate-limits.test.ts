import { describe, expect, it } from 'vitest';
import { burstLimitReached, dailyLimitReached, Overloaded } from '../../src/protocol/rate-limits.ts';

const AT_MS = Date.UTC(2024, 5, 27, 12, 16, 19, 250);

describe('a rate limit reports', () => {
  it('the daily limit, the remaining messages, and when the next UTC day begins', () => {
    const { name, status, message, headers } = dailyLimitReached(500, 3, AT_MS);
    expect({ name, status, message }).toEqual({
      name: 'RateLimited',
      status: 429,
      message: 'Exceeded daily rate limit',
    });
    const resetAtS = String(Date.UTC(2024, 5, 28) / 1_000);
    expect(headers).toEqual({ 'RateLimit-Limit': '500', 'RateLimit-Remaining': '3', 'RateLimit-Reset': resetAtS });
  });

  it('the burst limit, and when the next second begins', () => {
    const { status, message, headers } = burstLimitReached(20, AT_MS);
    expect({ status, message }).toEqual({ status: 429, message: 'Exceeded burst rate limit' });
    const resetAtS = String(Date.UTC(2024, 5, 27, 12, 16, 20) / 1_000);
    expect(headers).toEqual({
      'Burst-RateLimit-Limit': '20',
      'Burst-RateLimit-Remaining': '0',
      'Burst-RateLimit-Reset': resetAtS,
    });
  });

  it('when to retry if messages arrive faster than they can be saved', () => {
    const { name, status, message, headers } = new Overloaded(7);
    expect({ name, status, headers }).toEqual({ name: 'Overloaded', status: 503, headers: { 'Retry-After': '7' } });
    expect(message).toContain('try again in 7 s');
  });
});
