/**
 * Bugs of Node that were fixed after the oldest version on which `serve` starts without a warning (`cli/node-version.ts`). No
 * data from an endpoint or a publisher reaches the affected code.
 */
import { brotliCompressSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { decoderFor } from '../../src/delivery/responses/content-encoding.ts';
import { originOf } from '../../src/engine/messages/accept.ts';
import { checkUrl } from '../../src/protocol/urls/destination.ts';
import { claimOf, openDelivery, startEndpoint, untouched } from './support.ts';

const isBrotliDecoded = decoderFor({ 'Content-Encoding': ['br'] }, Uint8Array.of(1)) !== undefined;

describe('faults of Node that nobody outside can reach', () => {
  it('decoding Brotli: a response is decoded only by a fixed decoder', () => {
    const [header, bytes] = [{ 'Content-Encoding': ['br'] }, brotliCompressSync('a'.repeat(1000))];
    const isDecoded = (version: string): boolean => decoderFor(header, bytes, version) !== undefined;
    expect(['22.19.0', '24.21.0', '24.22.0'].some(isDecoded)).toBe(false);
    expect(['24.22.1', '24.23.0', '26.0.0'].every(isDecoded)).toBe(true);
  });

  it.skipIf(isBrotliDecoded)('decoding Brotli: on this Node version a response stays encoded', async () => {
    const compressed = brotliCompressSync('a'.repeat(1000));
    const endpoint = await startEndpoint((response) => {
      response.writeHead(500, { 'content-encoding': 'br' });
      response.end(compressed);
    });
    const outcome = await openDelivery().attempt(claimOf(endpoint.origin), untouched());
    if (outcome.kind !== 'responded') throw new Error(`it was ${outcome.kind}`);
    expect(Buffer.from(outcome.body).equals(compressed)).toBe(true);
  });

  it.each(['https://a%00.example/', 'https://a\0.example/'])(
    'looking up a name with a NUL byte: %j is no URL',
    (url) => {
      expect(() => checkUrl(url)).toThrow();
    },
  );

  it.each([
    ['https://0x7f.1/', 'https://127.0.0.1'],
    ['https://[0:0::1]/', 'https://[::1]'],
    ['https://127.1:8443/', 'https://127.0.0.1:8443'],
  ])('checking certificates of an oddly written address: %s is %s by then', (url, origin) => {
    expect(originOf(url)).toBe(origin);
  });
});
