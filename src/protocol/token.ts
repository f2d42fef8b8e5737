/** Creates, hashes and names API tokens. */
import { Buffer } from 'node:buffer';
import { hash } from 'node:crypto';

/** 256 bits cannot be guessed, so a plain hash of the token is safe to store. */
const SECRET_BYTES = 32;

/** Only printable characters, so that control characters cannot disguise a name on a terminal. */
const NAME = /^[^\p{C}\p{Zl}\p{Zp}]{1,100}$/u;

/** The rule for names of tokens; it completes a sentence whose subject is the name. */
export const TOKEN_NAME_RULE = 'has 1 to 100 printable characters';

export function isTokenName(text: string): boolean {
  return NAME.test(text) && text.trim() !== '';
}

/** A new token with a random secret, for the project `projectName`. */
export function mintRandomToken(projectName: string, randomBytes: (count: number) => Uint8Array): string {
  return mintToken(projectName, Buffer.from(randomBytes(SECRET_BYTES)).toString('base64url'));
}

/** A token in the form that clients decode: base64 of `{"UserID":…,"Password":…}` (contract M 2.1). */
export function mintToken(userId: string, secret: string): string {
  return Buffer.from(JSON.stringify({ UserID: userId, Password: secret })).toString('base64');
}

/**
 * SHA-256 of the whole token, base64url: stored and looked up instead of the token. Tokens are long and random, so a
 * slow hash would give no more protection.
 */
export function hashToken(token: string): string {
  return hash('sha256', token, 'base64url');
}

/** 64 bits of the hash: enough to distinguish tokens, but useless for guessing a token. */
const ID_BYTES = 8;

/**
 * The id of a token, for views that must not show the token itself: `tok_` and the beginning of its hash in hex. The
 * owner of a token can compute it: `printf %s "$TOKEN" | sha256sum`.
 */
export function tokenIdOf(tokenHash: string): string {
  return `tok_${Buffer.from(tokenHash, 'base64url').toString('hex', 0, ID_BYTES)}`;
}

/** The `UserID` inside a token; `undefined` for a token without a `UserID`. Does not check whether the token is valid. */
export function userIdOfToken(token: string): string | undefined {
  try {
    const decoded: unknown = JSON.parse(Buffer.from(token, 'base64').toString('utf8'));
    if (typeof decoded !== 'object' || decoded === null || !('UserID' in decoded)) return undefined;
    return typeof decoded.UserID === 'string' && decoded.UserID !== '' ? decoded.UserID : undefined;
  } catch {
    return undefined; // Not JSON: tokens need not decode.
  }
}
