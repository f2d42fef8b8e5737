/** Verifies that a request comes from the server: its signature is a JWT over its body (contract W 9.1). */
import { decodeBase64Url, encodeBase64Url } from './base64.ts';
import { WorkflowError } from './errors.ts';
import type { WorkflowReceiver } from './types.ts';

/** Maximum difference between the clocks of server and endpoint. */
const CLOCK_TOLERANCE_S = 5;

interface Claims {
  iss: string;
  /** The URL that was published to. */
  sub: string;
  exp: number;
  nbf: number;
  body: string;
}

/** Checks signatures with two keys, so that keys can be rotated. Returns true or throws. */
export class Receiver implements WorkflowReceiver {
  readonly #keys: ReturnType<typeof importKey>[];

  constructor({ currentSigningKey, nextSigningKey }: { currentSigningKey: string; nextSigningKey: string }) {
    this.#keys = [currentSigningKey, nextSigningKey].map(importKey);
  }

  /** `url` is the URL of the endpoint. Without `url`, a signature for any URL is valid. */
  async verify({ signature, body, url }: { signature: string; body: string; url?: string }): Promise<boolean> {
    const [header = '', claims = '', mac = ''] = signature.split('.');
    const signed = new TextEncoder().encode(`${header}.${claims}`);
    const bytes = decodeBase64Url(mac);
    for (const key of this.#keys) {
      if (await crypto.subtle.verify('HMAC', await key, bytes, signed))
        return checkClaims(readClaims(claims), body, url);
    }
    throw new WorkflowError('the signature is not made with one of the signing keys');
  }
}

function importKey(key: string) {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  return crypto.subtle.importKey('raw', new TextEncoder().encode(key), algorithm, false, ['verify']);
}

function readClaims(text: string): Claims {
  return JSON.parse(new TextDecoder().decode(decodeBase64Url(text))) as Claims;
}

async function checkClaims({ sub, exp, nbf, body: hash }: Claims, body: string, url?: string): Promise<boolean> {
  if (url !== undefined && withoutQuery(sub) !== withoutQuery(url))
    throw new WorkflowError('the signature is for another URL');
  const nowS = Date.now() / 1000;
  if (exp < nowS - CLOCK_TOLERANCE_S) throw new WorkflowError('the signature has expired');
  if (nbf > nowS + CLOCK_TOLERANCE_S) throw new WorkflowError('the signature is not valid yet');
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(body));
  if (hash.replace(/=+$/, '') !== encodeBase64Url(new Uint8Array(digest))) {
    throw new WorkflowError('the signature is for another body');
  }
  return true;
}

/** Drops the query: if a run was triggered with a query, its signatures are still for this endpoint. */
function withoutQuery(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}
