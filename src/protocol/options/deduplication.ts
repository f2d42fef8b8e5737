import { createHash, type Hash, hash } from 'node:crypto';
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

/** SHA-256, base64url, of the content, encoded so that different contents never have the same bytes. */
export function contentHash(content: Content): string {
  return begunHash(content).update(content.body).digest('base64url');
}

/** Bytes of a body that are hashed at once: some milliseconds. */
export const HASH_PIECE_BYTES = 1024 * 1024;

/** The same, piece by piece. `afterPiece` is called after each, and awaited. */
export async function contentHashInPieces(
  content: Content,
  afterPiece: () => Promise<void> | undefined,
): Promise<string> {
  const sha256 = begunHash(content);
  for (let at = 0; at < content.body.length; at += HASH_PIECE_BYTES) {
    sha256.update(content.body.subarray(at, at + HASH_PIECE_BYTES));
    await afterPiece();
  }
  return sha256.digest('base64url');
}

function begunHash({ destination, header, endpointUrl }: Content): Hash {
  const entries = Object.entries(header).sort(([a], [b]) => (a < b ? -1 : 1));
  // A JSON array ends at its closing bracket, so no part of the body can be read as part of the array.
  const head = JSON.stringify(['content', destination, endpointUrl ?? null, entries]);
  return createHash('sha256').update(head);
}

/**
 * The hash of an id that the client chose. Its encoding starts with `id`, so it never equals that of a content
 * (contract M 11.5).
 */
export function explicitHash(id: string, endpointUrl?: string): string {
  return hash('sha256', JSON.stringify(['id', id, endpointUrl ?? null]), 'base64url');
}
