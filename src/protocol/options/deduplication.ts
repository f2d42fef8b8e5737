/** Hashes the deduplication id or the content of a publish. */
import { createHash, type Hash, hash } from 'node:crypto';
import type { HeaderMap } from './settings.ts';

/** Publishes with the same content are duplicates, if the deduplication id is derived from the content (contract M 11.2). */
export interface DeduplicationContent {
  /** URL text or group name. */
  destination: string;
  body: Uint8Array;
  /** `Content-Type` and the explicitly forwarded headers, by canonical name. */
  header: HeaderMap;
  /** Set in a publish to a group, whose endpoints are checked separately (contract M 11.6). */
  endpointUrl?: string;
}

/** SHA-256, base64url. Different contents are never encoded as the same bytes. */
export function contentHash(content: DeduplicationContent): string {
  return startHash(content).update(content.body).digest('base64url');
}

/** Bytes of a body that are hashed synchronously, which takes some milliseconds. */
export const HASH_CHUNK_BYTES = 1024 * 1024;

/** Like `contentHash`, but in chunks. Awaits `afterChunk` after each chunk. */
export async function contentHashInChunks(
  content: DeduplicationContent,
  afterChunk: () => Promise<void> | undefined,
): Promise<string> {
  const sha256 = startHash(content);
  for (let at = 0; at < content.body.length; at += HASH_CHUNK_BYTES) {
    sha256.update(content.body.subarray(at, at + HASH_CHUNK_BYTES));
    await afterChunk();
  }
  return sha256.digest('base64url');
}

function startHash({ destination, header, endpointUrl }: DeduplicationContent): Hash {
  const entries = Object.entries(header).sort(([a], [b]) => (a < b ? -1 : 1));
  // A JSON array ends at its closing bracket, so no part of the body can be read as part of the array.
  const head = JSON.stringify(['content', destination, endpointUrl ?? null, entries]);
  return createHash('sha256').update(head);
}

/**
 * The hash of an id that the client chose. The encoding of an id starts with `id`, so it never equals the encoding of a
 * content (contract M 11.5).
 */
export function explicitHash(id: string, endpointUrl?: string): string {
  return hash('sha256', JSON.stringify(['id', id, endpointUrl ?? null]), 'base64url');
}
