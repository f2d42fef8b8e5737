import { createHmac } from 'node:crypto';
import { Receiver } from '@upstash/qstash';
import { describe, expect, it } from 'vitest';
import { type SignatureCheck, signDelivery, verifySignature } from '../../src/protocol/signature.ts';
import { fc } from '../support/fast-check.ts';

const signingKey = 'sig_7kYjw48mhY7kAjqNGcy6cr29RJ6r';
const nextSigningKey = 'sig_5ZB6DVzB1wjE8S6rZ7eenA8Pdnhs';
const url = 'https://example.com/a?b=c';
const body = new TextEncoder().encode('hello');
const nowS = 1_700_000_000;
const delivery = { url, body, signingKey, nowS, jwtId: 'jwt_1', dialect: 'upstash' } as const;

function check(changes: Partial<SignatureCheck> = {}): SignatureCheck {
  return { token: signDelivery(delivery), signingKeys: [signingKey], body, nowS, url, dialect: 'upstash', ...changes };
}

function failing(changes: Partial<SignatureCheck>): string {
  return failingIn(check(changes));
}

function failingIn(whole: SignatureCheck): string {
  const verdict = verifySignature(whole);
  return verdict.valid ? 'none' : verdict.claim;
}

/** A token with any header and claims, properly signed. */
function forge(claims: object, header: unknown = { alg: 'HS256', typ: 'JWT' }): string {
  const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const signed = `${encode(header)}.${encode(claims)}`;
  return `${signed}.${createHmac('sha256', signingKey).update(signed).digest('base64url')}`;
}

const claims = {
  iss: 'Upstash',
  sub: url,
  exp: nowS + 300,
  nbf: 0,
  iat: nowS,
  jti: 'jwt_1',
  body: 'LPJNul-wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=',
};

describe('the signature of a delivery', () => {
  it('has exactly the claims of the contract (118)', () => {
    const [head = '', payload = ''] = signDelivery(delivery).split('.');
    expect(Buffer.from(head, 'base64url').toString()).toBe('{"alg":"HS256","typ":"JWT"}');
    expect(JSON.parse(Buffer.from(payload, 'base64url').toString())).toEqual(claims);
    expect(signDelivery(delivery)).toBe(forge(claims));
  });

  it('hashes the empty body as zero bytes (119)', () => {
    const token = signDelivery({ ...delivery, body: new Uint8Array() });
    const verdict = verifySignature(check({ token, body: new Uint8Array() }));
    expect(verdict).toMatchObject({ claims: { body: '47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU=' } });
  });

  it('is issued by Waypost in the Waypost dialect', () => {
    const token = signDelivery({ ...delivery, dialect: 'waypost' });
    expect(verifySignature(check({ token, dialect: 'waypost' }))).toMatchObject({ claims: { iss: 'Waypost' } });
    expect(failing({ token })).toBe('iss');
  });

  it('is accepted by the official receiver under the current and the next key', async () => {
    const receiver = new Receiver({ currentSigningKey: nextSigningKey, nextSigningKey: signingKey });
    // The official receiver reads the wall clock; so far in the future nothing has expired.
    const signature = signDelivery({ ...delivery, nowS: 4_000_000_000 });
    await expect(receiver.verify({ signature, body: 'hello', url })).resolves.toBe(true);
    await expect(receiver.verify({ signature, body: 'hullo', url })).rejects.toThrow(/body/);
    await expect(receiver.verify({ signature, body: 'hello', url: 'https://example.com/' })).rejects.toThrow();
  });

  it('verifies for any URL, body and key, and for no other body', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme' }),
        fc.uint8Array(),
        fc.string({ minLength: 1 }),
        (anyUrl, anyBody, key) => {
          const token = signDelivery({ ...delivery, url: anyUrl, body: anyBody, signingKey: key });
          const fitting = { token, signingKeys: [key], url: anyUrl, body: anyBody };
          expect(verifySignature(check(fitting)).valid).toBe(true);
          expect(failing({ ...fitting, body: Uint8Array.of(...anyBody, 0) })).toBe('body');
        },
      ),
    );
  });
});

describe('the check of a signature', () => {
  it('tries all keys', () => {
    expect(failing({ signingKeys: [nextSigningKey, signingKey] })).toBe('none');
    expect(failing({ signingKeys: [nextSigningKey] })).toBe('signature');
    expect(failing({ signingKeys: [] })).toBe('signature');
  });

  it('names the claim that fails', () => {
    expect(failing({ url: 'https://example.com/' })).toBe('sub');
    expect(failing({ nowS: nowS + 301 })).toBe('exp');
    expect(failing({ nowS: nowS + 301, toleranceS: 1 })).toBe('none');
    expect(failing({ token: forge({ ...claims, nbf: nowS + 1 }) })).toBe('nbf');
    expect(failing({ token: forge({ ...claims, iat: undefined }) })).toBe('iat');
    expect(failing({ token: forge({ ...claims, jti: '' }) })).toBe('jti');
    expect(failing({ token: forge({ ...claims, iss: 'Somebody' }) })).toBe('iss');
    expect(failing({ token: forge({ ...claims, exp: String(nowS + 300) }) })).toBe('exp');
  });

  it('requires a subject even if any URL is accepted', () => {
    const { url: _url, ...ofAnyUrl } = check();
    expect(failingIn({ ...ofAnyUrl, token: forge({ ...claims, sub: 'https://else.example/' }) })).toBe('none');
    expect(failingIn({ ...ofAnyUrl, token: forge({ ...claims, sub: undefined }) })).toBe('sub');
  });

  it('accepts only the two issuers if no dialect is given', () => {
    const { dialect: _dialect, ...ofAnyIssuer } = check();
    const failingOf = (iss: string): string => failingIn({ ...ofAnyIssuer, token: forge({ ...claims, iss }) });
    expect(['Upstash', 'Waypost', 'Somebody'].map(failingOf)).toEqual(['none', 'none', 'iss']);
  });

  it('accepts a token without a type', () => {
    expect(failing({ token: forge(claims, { alg: 'HS256' }) })).toBe('none');
  });

  it('rejects signed claims that are not an object', () => {
    expect(failing({ token: forge(Object.assign([], claims)) })).toBe('token');
  });

  it('never takes the algorithm from the token', () => {
    expect(failing({ token: forge(claims, { alg: 'none' }) })).toBe('alg');
    expect(failing({ token: forge(claims, { alg: 'HS512', typ: 'JWT' }) })).toBe('alg');
    expect(failing({ token: forge(claims, { alg: 'HS256', typ: 'JWE' }) })).toBe('alg');
    const [head = '', payload = ''] = signDelivery(delivery).split('.');
    expect(failing({ token: `${head}.${payload}.` })).toBe('signature');
  });

  it('accepts only canonical base64url', () => {
    const token = signDelivery(delivery);
    expect(failing({ token: `${token}=` })).toBe('signature');
    expect(failing({ token: `${token} ` })).toBe('signature');
    expect(failing({ token: `${token}.` })).toBe('token');
    expect(failing({ token: forge(claims, null) })).toBe('token');
    expect(failing({ token: '' })).toBe('token');
  });

  it('never throws, and accepts no arbitrary text', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.stringMatching(/^[A-Za-z0-9_-]{0,20}(\.[A-Za-z0-9_-]{0,20}){0,3}$/)),
        (token) => {
          expect(verifySignature(check({ token })).valid).toBe(false);
        },
      ),
    );
  });
});
