/**
 * Encrypts signing keys for the database (AES-256-GCM), so that nobody can sign with a stolen copy of the database.
 *
 * A sealed text consists of `v1.` and the base64url of nonce (12 bytes), ciphertext and tag (16 bytes). The caller passes
 * the key and the source of randomness.
 */
import { createCipheriv, createDecipheriv } from 'node:crypto';

export const ENCRYPTION_KEY_BYTES = 32;

const VERSION = 'v1.';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** The sealed text was encrypted with another key, or was modified. */
export class SealBroken extends Error {
  constructor(what: string) {
    super(`cannot decrypt ${what}: it was encrypted with another encryption key`);
    this.name = 'SealBroken';
  }
}

/** Encrypts `text` with a new nonce, so that equal texts have different ciphertexts. */
export function seal(text: string, key: Uint8Array, randomBytes: (count: number) => Uint8Array): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
  const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  return VERSION + sealed.toString('base64url');
}

/** Decrypts a sealed text. `what` describes the text in the error for the operator. Throws `SealBroken`. */
export function unseal(sealed: string, key: Uint8Array, what: string): string {
  const bytes = Buffer.from(sealed.slice(VERSION.length), 'base64url');
  if (!sealed.startsWith(VERSION) || bytes.length < NONCE_BYTES + TAG_BYTES) throw new SealBroken(what);
  const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAuthTag(bytes.subarray(bytes.length - TAG_BYTES));
  try {
    const text = decipher.update(bytes.subarray(NONCE_BYTES, bytes.length - TAG_BYTES));
    return Buffer.concat([text, decipher.final()]).toString('utf8');
  } catch {
    throw new SealBroken(what); // the authentication tag does not match
  }
}
