/** The header names of the two dialects. */
import type { Dialect } from './settings.ts';

/** The headers that the server adds to a delivery or a response, without their prefix (contract M 7.2, 8.5). */
export type DeliveryHeader =
  | 'Signature'
  | 'Message-Id'
  | 'Retried'
  | 'Topic-Name'
  | 'Schedule-Id'
  | 'Caller-Ip'
  | 'Region'
  | 'NonRetryable-Error';

const PREFIXES = { upstash: 'Upstash', waypost: 'Waypost' } as const;

/** `Upstash` or `Waypost`: the word before the first hyphen of every header of the dialect, and the signature's issuer. */
export function prefixOf(dialect: Dialect): 'Upstash' | 'Waypost' {
  return PREFIXES[dialect];
}

/** The full name of a header of the dialect: `Upstash-Message-Id`. */
export function deliveryHeaderName(dialect: Dialect, header: DeliveryHeader): string {
  return `${PREFIXES[dialect]}-${header}`;
}

/** The `User-Agent` of a delivery, unless the publish forwards a `User-Agent`. */
export function userAgent(dialect: Dialect): string {
  return dialect === 'upstash' ? 'Upstash-QStash' : 'Waypost';
}
