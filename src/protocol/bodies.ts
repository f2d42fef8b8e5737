/** Encodes bodies as text, base64 or JSON. */
import { Buffer, isUtf8 } from 'node:buffer';

/**
 * Bytes as JSON shows them: as text if they are valid UTF-8, otherwise as standard padded base64; `undefined` if empty
 * (contract M 3.6). The caller names the fields: `body`/`bodyBase64`, `responseBody`/`responseBodyBase64`.
 */
export function textOrBase64(bytes: Uint8Array): { text: string } | { base64: string } | undefined {
  if (bytes.length === 0) return undefined;
  // toString instead of TextDecoder, which would drop a byte order mark.
  return isUtf8(bytes) ? { text: viewOf(bytes).toString('utf8') } : { base64: base64OfBytes(bytes) };
}

/** The maximum length of a UTF-8 character. */
const CHARACTER_BYTES_MAX = 4;

/** The first `bytesMax` bytes as text, without a truncated last character; as base64 if they are not valid UTF-8. */
export function bodyText(bytes: Uint8Array, bytesMax = bytes.length): string {
  if (bytes.length <= bytesMax) return isUtf8(bytes) ? viewOf(bytes).toString('utf8') : base64OfBytes(bytes);
  for (let cut = 0; cut < CHARACTER_BYTES_MAX; cut++) {
    const prefix = bytes.subarray(0, Math.max(0, bytesMax - cut));
    if (isUtf8(prefix)) return viewOf(prefix).toString('utf8');
  }
  return base64OfBytes(bytes.subarray(0, bytesMax));
}

/** Standard padded base64; `''` for no bytes. */
export function base64OfBytes(bytes: Uint8Array): string {
  return viewOf(bytes).toString('base64');
}

/** The bytes of standard padded base64; `undefined` for any other text. */
export function bytesOfBase64(text: string): Uint8Array | undefined {
  const bytes = Buffer.from(text, 'base64');
  return bytes.toString('base64') === text ? bytes : undefined;
}

/** A multiple of 3, so that only the last chunk is padded. */
const CHUNK_BYTES = 3 * 1024 * 1024;

/** The text of `base64OfBytes` as ASCII bytes, written in chunks, since the text of a large body can exceed the maximum length of a string. */
export function base64BytesOf(bytes: Uint8Array): Uint8Array {
  const ascii = Buffer.allocUnsafe(base64Length(bytes));
  writeBase64(bytes, ascii, 0);
  return ascii;
}

/** An object as JSON: `members`, and `name` with the base64 of `bytes`. The base64 is written directly as bytes, never as one string. */
export function jsonWithBase64(members: Record<string, unknown>, name: string, bytes: Uint8Array): Uint8Array {
  const [before = '', after = ''] = JSON.stringify({ ...members, [name]: '' }).split(/(?="\}$)/);
  const json = Buffer.allocUnsafe(Buffer.byteLength(before) + base64Length(bytes) + after.length);
  const at = writeBase64(bytes, json, json.write(before));
  json.write(after, at);
  return json;
}

function base64Length(bytes: Uint8Array): number {
  return 4 * Math.ceil(bytes.length / 3);
}

/** Returns the end position. */
function writeBase64(bytes: Uint8Array, to: Buffer, start: number): number {
  let end = start;
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
    end += to.write(base64OfBytes(bytes.subarray(at, at + CHUNK_BYTES)), end, 'latin1');
  }
  return end;
}

function viewOf(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
