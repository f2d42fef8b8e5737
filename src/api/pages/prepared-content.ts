/** Prepares texts and files that are the same for all clients: once, with a compressed form and an ETag. */
import { hash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { ApiResponse } from '../response.ts';
import { headerOf } from '../route.ts';

export interface PreparedContent {
  contentType: string;
  bytes: Uint8Array;
  /** The compressed bytes; absent if compression does not shorten the content. */
  gzip?: Uint8Array;
  /** Changes with the content; the same for both forms. */
  etag: string;
}

export async function prepareContent(contentType: string, bytes: Uint8Array): Promise<PreparedContent> {
  const compressed = await promisify(gzip)(bytes, { level: 9 });
  return {
    contentType,
    bytes,
    ...(compressed.length < bytes.length && { gzip: compressed }),
    etag: `W/"${hash('sha256', bytes, 'base64url').slice(0, 22)}"`,
  };
}

/** The response in the encoding that the client accepts; a 304 if the client has the content already. */
export function preparedResponse(
  { contentType: type, bytes, gzip: compressed, etag }: PreparedContent,
  rawHeaders: readonly string[],
  extraHeaders: Readonly<Record<string, string>>,
): ApiResponse {
  const headers = { ...extraHeaders, etag, vary: 'Origin, Accept-Encoding' };
  if (headerOf(rawHeaders, 'if-none-match')?.includes(etag)) return { status: 304, json: '', headers };
  if (compressed === undefined || !acceptsGzip(headerOf(rawHeaders, 'accept-encoding'))) {
    return { status: 200, json: '', content: { type, body: bytes }, headers };
  }
  const content = { type, body: compressed };
  return { status: 200, json: '', content, headers: { ...headers, 'content-encoding': 'gzip' } };
}

function acceptsGzip(accepted = ''): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(accepted);
}
