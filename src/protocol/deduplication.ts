import { createHash, hash } from 'node:crypto';
import type { HeaderMap } from './settings.ts';

/** What makes two publishes the same one when the id is derived from the content (contract M 11.2). */
export interface Content {
  /** URL text or group name. */
  destination: string;
  body: Uint8Array;
  /** `Content-Type` and the explicitly forwarded headers, canonical names. */
  header: HeaderMap;
  /** The endpoint's URL when a group is published to: each endpoint is checked for itself (contract M 11.6). */
  endpointUrl?: string;
}

/** SHA-256, base64url, of the content in an encoding that two different contents never share. */
export function contentHash({ destination, body, header, endpointUrl }: Content): string {
  const entries = Object.entries(header).sort(([a], [b]) => (a < b ? -1 : 1));
  // A JSON array ends where its bracket closes, so nothing of the body can be taken for a part of it.
  const head = JSON.stringify(['content', destination, endpointUrl ?? null, entries]);
  return createHash('sha256').update(head).update(body).digest('base64url');
}

/** The same for an id that the caller chose; in a space of its own, so that no content can meet it (contract M 11.5). */
export function explicitHash(id: string, endpointUrl?: string): string {
  return hash('sha256', JSON.stringify(['id', id, endpointUrl ?? null]), 'base64url');
}
