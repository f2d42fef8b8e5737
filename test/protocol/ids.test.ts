import { describe, expect, it } from 'vitest';
import {
  keyOfMessageId,
  mintJwtId,
  mintMessageId,
  mintRunId,
  mintScheduleId,
  mintSigningKey,
  randomBase58,
} from '../../src/protocol/ids.ts';
import { hashToken, mintToken, userIdOfToken } from '../../src/protocol/token.ts';
import { fc } from '../support/fast-check.ts';
import { seededBytes } from './refusal.ts';

const random = seededBytes(1);

describe('a message id', () => {
  it('contains its key', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), (key) => {
        const id = mintMessageId(key, random);
        expect(id).toMatch(/^msg_[1-9A-HJ-NP-Za-km-z]{32}$/);
        expect(keyOfMessageId(id)).toBe(key);
      }),
    );
    for (const key of [0, 1, 57, 58, Number.MAX_SAFE_INTEGER]) {
      expect(keyOfMessageId(mintMessageId(key, random))).toBe(key);
    }
  });

  it('writes the key most significant digit first, so that ids of one prefix sort like their keys', () => {
    expect(mintMessageId(0, random).slice(4, 14)).toBe('1111111111');
    expect(mintMessageId(58, random).slice(4, 14)).toBe('1111111121');
  });

  const valid = mintMessageId(123_456_789, random);
  it.each([
    '',
    'msg_',
    valid.slice(0, -1),
    `${valid}1`,
    valid.replace('msg_', 'MSG_'),
    valid.replace('msg_', 'scd_'),
    `${valid.slice(0, -1)}0`,
    `${valid.slice(0, -1)}O`,
    `${valid.slice(0, -1)}é`,
    `${valid.slice(0, -1)}\u{10ffff}`.slice(0, 36),
    `msg_0${valid.slice(5)}`,
    // The largest ten digits stand for 58^10 - 1, beyond the safe integers.
    `msg_zzzzzzzzzz${valid.slice(14)}`,
    'msg_26hZCxZCuWyyTWPmSVBrNC1RADwpgWxPcak2rQD51EMjFMuzcW7qYXpPiDyw8Gd',
  ])('is not %j', (id) => {
    expect(keyOfMessageId(id)).toBeUndefined();
  });

  it('is rejected above the largest key', () => {
    // 2^53 in base58, padded.
    let rest = 2n ** 53n;
    let digits = '';
    for (let i = 0; i < 10; i++) {
      digits = '123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz'.charAt(Number(rest % 58n)) + digits;
      rest /= 58n;
    }
    expect(keyOfMessageId(`msg_${digits}${valid.slice(14)}`)).toBeUndefined();
  });
});

describe('random digits', () => {
  it('have the requested length, even a large one', () => {
    for (const length of [0, 1, 28, 64, 65, 500]) {
      expect(randomBase58(length, random)).toMatch(new RegExp(`^[1-9A-HJ-NP-Za-km-z]{${length}}$`));
    }
  });

  it('drop the bytes that would favour the first digits of the alphabet', () => {
    const asked: number[] = [];
    const bytes = (count: number): Uint8Array => {
      asked.push(count);
      // First only bytes that do not count, then the greatest that does.
      return new Uint8Array(count).fill(asked.length === 1 ? 232 : 231);
    };
    expect(randomBase58(5, bytes)).toBe('zzzzz');
    expect(asked).toHaveLength(2);
  });

  it('are equally likely: each digit comes from four byte values', () => {
    const counts = new Map<string, number>();
    for (let byte = 0; byte < 232; byte++) {
      const digit = randomBase58(1, () => Uint8Array.of(byte));
      counts.set(digit, (counts.get(digit) ?? 0) + 1);
    }
    expect(counts.size).toBe(58);
    expect(new Set(counts.values())).toEqual(new Set([4]));
  });

  it('follow the prefix of each kind of id', () => {
    expect(mintSigningKey(random)).toMatch(/^sig_[1-9A-HJ-NP-Za-km-z]{28}$/);
    expect(mintJwtId(random)).toMatch(/^jwt_[1-9A-HJ-NP-Za-km-z]{28}$/);
    expect(mintScheduleId(random)).toMatch(/^scd_[1-9A-HJ-NP-Za-km-z]{28}$/);
    expect(mintRunId(random)).toMatch(/^wfr_[1-9A-HJ-NP-Za-km-z]{21}$/);
  });
});

describe('a token', () => {
  it('is the published one for the published user', () => {
    const token = 'eyJVc2VySUQiOiJkZWZhdWx0VXNlciIsIlBhc3N3b3JkIjoiZGVmYXVsdFBhc3N3b3JkIn0=';
    expect(mintToken('defaultUser', 'defaultPassword')).toBe(token);
    expect(userIdOfToken(token)).toBe('defaultUser');
  });

  it('contains its user, whatever the name', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, unit: 'grapheme' }), fc.string(), (userId, secret) => {
        expect(userIdOfToken(mintToken(userId, secret))).toBe(userId);
      }),
    );
  });

  it.each([
    '',
    'abc',
    '%%',
    btoa('null'),
    btoa('[]'),
    btoa('"x"'),
    btoa('{}'),
    btoa('{"UserID":1}'),
    btoa('{"UserID":""}'),
  ])('need not have a user: %j', (token) => {
    expect(userIdOfToken(token)).toBeUndefined();
  });

  it('is stored as its SHA-256 in base64url', () => {
    expect(hashToken('abc')).toBe('ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0');
  });
});
