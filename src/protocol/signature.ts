/** Signs attempts with a JWT, and verifies such signatures (contract M 10). */
import { Buffer } from 'node:buffer';
import { createHmac, createSecretKey, type Hmac, hash, timingSafeEqual } from 'node:crypto';
import { isObject } from './json-objects.ts';
import { memo } from './memo.ts';
import { prefixOf } from './options/dialect.ts';
import type { Dialect } from './options/settings.ts';

/** The data that the signature of an attempt covers (contract M 10.1). */
export interface SignedDelivery {
  /** The requested URL. */
  url: string;
  /** The bytes of the request body. */
  body: Uint8Array;
  /** The whole current key, `sig_` included. */
  signingKey: string;
  /** Unix seconds at which the attempt starts. */
  nowS: number;
  /** Unique for each attempt, `jwt_…`. */
  jwtId: string;
  dialect: Dialect;
}

/** The claims, in the order in which they are written. */
export interface SignatureClaims {
  iss: string;
  sub: string;
  exp: number;
  nbf: number;
  iat: number;
  jti: string;
  body: string;
}

const LIFETIME_S = 300;
const HEADER = Buffer.from('{"alg":"HS256","typ":"JWT"}').toString('base64url');

const keyObjectOf = memo((signingKey) => createSecretKey(signingKey, 'utf8'));

/** The JWT for the header `Upstash-Signature` of one attempt. */
export function signDelivery({ url, body, signingKey, nowS, jwtId, dialect }: SignedDelivery): string {
  const claims: SignatureClaims = {
    iss: prefixOf(dialect),
    sub: url,
    exp: nowS + LIFETIME_S,
    nbf: 0, // Not the time of `iat`, which a receiver with a slow clock would reject.
    iat: nowS,
    jti: jwtId,
    body: bodyClaim(body),
  };
  const signed = `${HEADER}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`;
  return `${signed}.${hmac(signed, signingKey).digest('base64url')}`;
}

function hmac(text: string, signingKey: string): Hmac {
  return createHmac('sha256', keyObjectOf(signingKey)).update(text);
}

/** SHA-256 as base64url with padding: 32 bytes always take 43 digits and one `=`. */
function bodyClaim(body: Uint8Array): string {
  return `${hash('sha256', body, 'base64url')}=`;
}

/** The data with which a receiver checks a signature. */
export interface SignatureCheck {
  /** The value of the signature header. */
  token: string;
  /** Tried in order: the current key, then the next. */
  signingKeys: readonly string[];
  body: Uint8Array;
  nowS: number;
  /** Checked if present. */
  url?: string;
  dialect?: Dialect;
  /** Allowed difference between the clocks; default 0. */
  toleranceS?: number;
}

/** The checks of a signature. `token` checks that the text is a compact JWS. */
export const SIGNATURE_CHECKS = [
  'token',
  'alg',
  'signature',
  'iss',
  'sub',
  'exp',
  'nbf',
  'iat',
  'jti',
  'body',
] as const;

export interface SignatureFailure {
  claim: (typeof SIGNATURE_CHECKS)[number];
  /** Completes a sentence whose subject is the claim: "is missing". */
  reason: string;
}

/** `claim` names the first failed check. All claims are checked, but only if the signature is valid. */
export type SignatureVerdict =
  | { valid: true; claims: SignatureClaims }
  | { valid: false; claim: SignatureFailure['claim']; failures: SignatureFailure[] };

/**
 * Checks a signature as a careful receiver does (contract M 10.2). The algorithm is fixed and never taken from the
 * token, base64url must be unpadded, and every claim must be present with its type. Never throws.
 */
export function verifySignature(check: SignatureCheck): SignatureVerdict {
  const segments = check.token.split('.');
  const [head = '', payload = '', signature = ''] = segments;
  const header = readSegment(head);
  if (segments.length !== 3 || header === undefined) return refused('token', NO_TOKEN);
  if (header.alg !== 'HS256' || (header.typ !== undefined && header.typ !== 'JWT')) {
    return refused('alg', 'is not HS256 of a JWT');
  }

  const signed = `${head}.${payload}`;
  const mac = bytesOfSegment(signature);
  if (mac === undefined || !check.signingKeys.some((key) => sameBytes(mac, hmac(signed, key).digest()))) {
    return refused('signature', 'matches none of the signing keys, or the claims were changed');
  }
  const claims = readSegment(payload);
  if (claims === undefined) return refused('token', NO_TOKEN);
  const [first, ...others] = failingClaims(claims, check);
  if (first === undefined) return { valid: true, claims: claims as unknown as SignatureClaims };
  return { valid: false, claim: first.claim, failures: [first, ...others] };
}

const NO_TOKEN = 'is not three parts of unpadded base64url, separated by dots';

function failingClaims(
  claims: Record<string, unknown>,
  { url, body, nowS, dialect, toleranceS = 0 }: SignatureCheck,
): SignatureFailure[] {
  const { iss, sub, exp, nbf, iat, jti } = claims;
  const issuers = dialect === undefined ? ['Upstash', 'Waypost'] : [prefixOf(dialect)];
  const failures: SignatureFailure[] = [];
  const check = (claim: keyof SignatureClaims, isValid: boolean, reason: string): void => {
    if (!isValid) failures.push({ claim, reason });
  };
  check('iss', issuers.includes(iss as string), `is not ${issuers.join(' or ')}`);
  check('sub', typeof sub === 'string' && (url === undefined || sub === url), 'is not exactly the URL');
  check('exp', typeof exp === 'number' && nowS - toleranceS <= exp, 'is not a time in the future');
  check('nbf', typeof nbf === 'number' && nowS + toleranceS >= nbf, 'is not a time in the past');
  check('iat', typeof iat === 'number', 'is not a time');
  check('jti', typeof jti === 'string' && jti !== '', 'is missing');
  check('body', claims['body'] === bodyClaim(body), 'is not the hash of this body');
  return failures;
}

function refused(claim: SignatureFailure['claim'], reason: string): SignatureVerdict {
  return { valid: false, claim, failures: [{ claim, reason }] };
}

/** The JSON object in a segment; `undefined` if there is none. */
function readSegment(segment: string): Record<string, unknown> | undefined {
  const bytes = bytesOfSegment(segment);
  if (bytes === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined; // Not JSON.
  }
}

/** Bytes of canonical unpadded base64url. Node itself also accepts padding, other alphabets and stray bits. */
function bytesOfSegment(segment: string): Buffer | undefined {
  const bytes = Buffer.from(segment, 'base64url');
  return segment !== '' && bytes.toString('base64url') === segment ? bytes : undefined;
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}
