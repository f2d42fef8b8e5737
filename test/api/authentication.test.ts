/** Finds the token of a request, and what the token authorizes (contract M 2.1, 2.2). */
import { describe, expect, it } from 'vitest';
import type { Accounts, Caller } from '../../src/api/accounts.ts';
import { authenticate, authorize, authorizeFully } from '../../src/api/edge/authentication.ts';
import type { Access } from '../../src/api/route.ts';
import type { TokenScope } from '../../src/engine/accounts/store.ts';
import { ApiError } from '../../src/protocol/errors.ts';
import { hashToken } from '../../src/protocol/token.ts';

const CALLER: Caller = { projectId: 7, scope: 'read-only' };

/** Where only `token` is known. */
function accountsWith(token: string): Accounts {
  const known = hashToken(token);
  return { authenticate: (hash: string) => (hash === known ? CALLER : undefined) } as Accounts;
}

const UNAUTHENTICATED = new ApiError('unauthenticated', 'unable to authenticate: invalid token');

describe('the token', () => {
  it.each([
    ['Bearer T+=', ''],
    ['bearer \t T+=', ''],
    [' BEARER T+=  ', ''],
    ['Bearer T+=', 'count=1&token=x'],
    ['Bearer T+=', 'count=%zz'],
  ])('of Authorization %j and ?%s is in the header', (authorization, query) => {
    const admission = authenticate(accountsWith('T+='), authorization, query);
    expect(admission).toEqual({ caller: CALLER, tokenHash: hashToken('T+='), isTokenInHeader: true });
  });

  it.each([
    [undefined, 'qstash_token=T+='],
    ['Bearer other', 'qstash_token=T+='],
    ['Bearer other', 'count=1&QStash_Token=T%2B%3D'],
    ['Bearer other', 'count=%zz&%71stash%5Ftoken=T+='],
    ['Bearer other', 'qstash_token=T+=&qstash_token=other'],
    ['Bearer other', 'xqstash_token=a&qstash_token=T+='],
  ])('of Authorization %j and ?%s is in the query, which decides', (authorization, query) => {
    const admission = authenticate(accountsWith('T+='), authorization, query);
    expect(admission).toEqual({ caller: CALLER, tokenHash: hashToken('T+='), isTokenInHeader: false });
  });

  it.each([
    [undefined, ''],
    [undefined, 'count=1&token=T'],
    ['', ''],
    ['Bearer', ''],
    ['Bearer ', ''],
    ['BearerT', ''],
    ['T', ''],
    ['Basic T', ''],
    ['Basic Bearer T', ''],
    ['Bearer T T', ''],
    ['Bearer T', 'qstash_token='],
    ['Bearer T', 'qstash_token'],
  ])('of Authorization %j and ?%s is none', (authorization, query) => {
    expect(() => authenticate(accountsWith('T'), authorization, query)).toThrow(UNAUTHENTICATED);
  });

  it('is looked up as a hash up to 4096 characters, and not at all beyond them', () => {
    const longest = 'T'.repeat(4096);
    expect(authenticate(accountsWith(longest), `Bearer ${longest}`, '')?.caller).toBe(CALLER);
    expect(() => authenticate(accountsWith(`${longest}T`), `Bearer ${longest}T`, '')).toThrow(UNAUTHENTICATED);
  });

  it('that nobody has admits nobody', () => {
    expect(authenticate(accountsWith('T'), 'Bearer other', '')).toBeUndefined();
    expect(authenticate(accountsWith('T'), 'Bearer T', 'qstash_token=other')).toBeUndefined();
  });
});

describe('a token', () => {
  const admitted = (scope: TokenScope, method: string, access: Access | undefined): boolean => {
    try {
      authorize({ projectId: 7, scope }, method, access);
      return true;
    } catch (error) {
      expect(error).toEqual(new ApiError('forbidden', `${scope} token cannot perform this operation`));
      return false;
    }
  };

  it.each<[TokenScope, Access[]]>([
    ['full', ['public', 'any', 'read', 'publish', 'full']],
    ['read-only', ['public', 'any', 'read']],
    ['publish-only', ['public', 'any', 'publish']],
  ])('that is %s is admitted to %j', (scope, expected) => {
    const every: Access[] = ['public', 'any', 'read', 'publish', 'full'];
    expect(every.filter((access) => admitted(scope, 'POST', access))).toEqual(expected);
  });

  it('that may read is told of a GET that there is no such route, and of another method only a full one', () => {
    const told = (method: string): TokenScope[] =>
      (['full', 'read-only', 'publish-only'] as const).filter((scope) => admitted(scope, method, undefined));
    expect(told('GET')).toEqual(['full', 'read-only']);
    expect(told('POST')).toEqual(['full']);
  });

  it.each([
    ['full', undefined],
    ['read-only', 'read-only token cannot perform this operation'],
    ['publish-only', 'publish-only token cannot perform this operation'],
    [undefined, 'no token cannot perform this operation'],
  ] as const)('that is %s, where a request turns out to want a full one, is told %j', (scope, expected) => {
    if (expected === undefined) return expect(() => authorizeFully(scope)).not.toThrow();
    expect(() => authorizeFully(scope)).toThrow(new ApiError('forbidden', expected));
  });
});
