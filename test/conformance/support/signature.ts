/** Verifies the signature of a delivery without using our own code (contract M 10.1). */
import { createHmac } from 'node:crypto';
import type { Received } from './endpoint.ts';
import type { Json } from './subject.ts';

export interface Signature {
  head: Json;
  claims: Json;
  isSignedWith(signingKey: string): boolean;
}

export function signatureOf({ headers }: Received): Signature {
  const [head = '', claims = '', mac = ''] = String(headers['upstash-signature']).split('.');
  const decode = (text: string): Json => JSON.parse(Buffer.from(text, 'base64url').toString());
  return {
    head: decode(head),
    claims: decode(claims),
    isSignedWith: (key) => createHmac('sha256', key).update(`${head}.${claims}`).digest('base64url') === mac,
  };
}
