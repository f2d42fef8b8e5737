/**
 * Decodes compressed responses. Deliveries ask for `identity`, but some servers compress anyway (contract M 7.6).
 *
 * The decoded body has the same limit as an uncompressed body, and counts against the same memory. Bodies are decoded in
 * chunks outside the event loop. A small body that expands beyond the limit is a decompression bomb, which is an error.
 */
import type { Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw, createZstdDecompress } from 'node:zlib';
import type { HeaderMap } from '../../protocol/options/settings.ts';
import type { ResponseBody } from './response-body.ts';

/** `bytesWritten` is the number of input bytes that the decoder has read. */
type Decoder = Transform & { readonly bytesWritten: number };

/**
 * The decoder for a body; undefined if the body is not encoded or cannot be decoded: several codings, an unknown coding, or
 * Brotli on a Node version whose decoder a hostile endpoint could exploit (CVE-2026-111497).
 */
export function decoderFor(
  header: HeaderMap,
  bytes: Uint8Array,
  nodeVersion = process.versions.node,
): Decoder | undefined {
  const codings = header['Content-Encoding'];
  if (codings === undefined || bytes.length === 0) return undefined;
  switch (codings.join(',').trim().toLowerCase()) {
    case 'gzip':
    case 'x-gzip':
      return createGunzip();
    case 'deflate':
      return hasZlibHeader(bytes) ? createInflate() : createInflateRaw();
    case 'br':
      return isBrotliSafe(nodeVersion) ? createBrotliDecompress() : undefined;
    case 'zstd':
      return createZstdDecompress();
    default:
      return undefined;
  }
}

/** RFC 9110 section 8.4.1.2: `deflate` is the zlib format, but many servers send raw deflate. */
function hasZlibHeader([first = 0, second = 0]: Uint8Array): boolean {
  return (first & 0x0f) === 8 && (first * 256 + second) % 31 === 0;
}

/** Whether this Node version has a safe Brotli decoder. The vulnerability was fixed in 24.22.1. */
function isBrotliSafe(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  return major > 24 || (major === 24 && (minor > 22 || (minor === 22 && patch >= 1)));
}

/** Text, JSON and XML compress by less than this factor; gzip can reach a factor of a thousand. */
const EXPANSION_MAX = 100;

/**
 * Decodes `from` with `decoder` into `into`, then calls `done` once: with `into`, with `from` if the bytes of `from` do
 * not have the declared encoding, or with `'bomb'` for a decompression bomb.
 */
export function decode(
  decoder: Decoder,
  from: ResponseBody,
  into: ResponseBody,
  done: (body: ResponseBody | 'bomb') => void,
): void {
  let isDone = false;
  const finish = (body: ResponseBody | 'bomb'): void => {
    if (isDone) return;
    isDone = true;
    decoder.destroy();
    done(body);
    for (const other of [from, into]) if (other !== body) other.release();
  };
  decoder.on('data', (chunk: Uint8Array) => {
    if (isDone || into.add(chunk)) return;
    finish(into.length > EXPANSION_MAX * decoder.bytesWritten ? 'bomb' : into);
  });
  decoder.on('end', () => finish(into));
  // Decoding a truncated response ends with an error. The bytes that were decoded before the error are the body.
  decoder.on('error', () => finish(from.isCut ? into : from));
  // Copied: `release` frees the memory at once, while the decoder's thread may still read it.
  decoder.end(from.bytes().slice());
}
