import { createHash, hash } from 'node:crypto';
import type { HeaderMap } from './settings.ts';

/** The content that two publishes must share to be duplicates, when the id is derived from it (contract M 11.2). */
export interface Content {
  /** URL text or group name. */
  destination: string;
  body: Uint8Array;
  /** `Content-Type` and the explicitly forwarded headers, canonical names. */
  header: HeaderMap;
  /** The endpoint's URL in a publish to a group: each endpoint is checked separately (contract M 11.6). */
  endpointUrl?: string;
}

/** SHA-256, base64url, of the content, encoded so that two different contents never have the same bytes. */
export function contentHash({ destination, body, header, endpointUrl }: Content): string {
  const entries = Object.entries(header).sort(([a], [b]) => (a < b ? -1 : 1));
  // A JSON array ends at its closing bracket, so no part of the body can be read as part of the array.
  const head = JSON.stringify(['content', destination, endpointUrl ?? null, entries]);
  return createHash('sha256').update(head).update(body).digest('base64url');
}

/**
 * The hash of an id that the client chose. Its encoding begins with `id`, so it never equals a content's
 * (contract M 11.5).
 */
export function explicitHash(id: string, endpointUrl?: string): string {
  return hash('sha256', JSON.stringify(['id', id, endpointUrl ?? null]), 'base64url');
}
