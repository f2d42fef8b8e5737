/** The errors for a client that has reached a limit (contract M 20.3). Clients distinguish the two rate limits by the headers. */
import { ApiError } from './errors.ts';

const SECOND_MS = 1000;
const DAY_MS = 86_400 * SECOND_MS;

/** A 429 with headers that name the limit and the time of its reset. */
export class RateLimited extends ApiError {
  readonly headers: Readonly<Record<string, string>>;

  constructor(message: string, headers: Readonly<Record<string, string>>) {
    super('rate_limited', message);
    this.name = 'RateLimited';
    this.headers = headers;
  }
}

/** A 503: messages arrive faster than they can be saved, and new requests would wait too long. */
export class Overloaded extends ApiError {
  readonly headers: Readonly<Record<string, string>>;

  constructor(retryAfterS: number) {
    super('unavailable', `too many messages are being published, try again in ${retryAfterS} s`);
    this.name = 'Overloaded';
    this.headers = { 'Retry-After': String(retryAfterS) };
  }
}

/** The project has used up its messages of the day, or too few are left for the request. */
export function dailyLimitReached(limit: number, remaining: number, nowMs: number): RateLimited {
  return new RateLimited('Exceeded daily rate limit', headersOf('RateLimit', limit, remaining, endOf(DAY_MS, nowMs)));
}

/** The project has used up its requests of the current second. */
export function burstLimitReached(limit: number, nowMs: number): RateLimited {
  return new RateLimited('Exceeded burst rate limit', headersOf('Burst-RateLimit', limit, 0, endOf(SECOND_MS, nowMs)));
}

/**
 * Unix seconds at the end of the window that contains `nowMs`. Days are UTC days, since Unix time has no leap seconds.
 */
function endOf(windowMs: number, nowMs: number): number {
  return ((Math.floor(nowMs / windowMs) + 1) * windowMs) / SECOND_MS;
}

function headersOf(prefix: string, limit: number, remaining: number, resetAtS: number): Record<string, string> {
  return {
    [`${prefix}-Limit`]: String(limit),
    [`${prefix}-Remaining`]: String(remaining),
    [`${prefix}-Reset`]: String(resetAtS),
  };
}
