/** Authenticates a request. The token comes in the query or in `Authorization`; the query wins (contract M 2.1). */
import type { TokenScope } from '../../engine/accounts/store.ts';
import { ApiError } from '../../protocol/errors.ts';
import { memo } from '../../protocol/memo.ts';
import { hashToken } from '../../protocol/token.ts';
import { formDecode, splitQuery } from '../../protocol/urls/request-target.ts';
import type { Accounts, Caller } from '../accounts.ts';
import type { Access } from '../route.ts';

/**
 * The same few tokens come with every request, so their hashes are remembered. This grants nothing: each hash is still
 * looked up.
 */
const hashOf = memo(hashToken);

/** Longer than any token. A longer text is refused without being hashed. */
const TOKEN_LENGTH_MAX = 4096;

export interface Admission {
  caller: Caller;
  tokenHash: string;
  isTokenInHeader: boolean;
}

/**
 * `undefined`: no such token. Throws `ApiError` 401 when the request has no token. The token is compared only as a
 * hash.
 */
export function authenticate(
  accounts: Accounts,
  authorization: string | undefined,
  rawQuery: string,
): Admission | undefined {
  const fromQuery = tokenInQuery(rawQuery);
  const token = fromQuery ?? bearerToken(authorization);
  if (token === undefined || token === '' || token.length > TOKEN_LENGTH_MAX) throw unauthenticated();
  const tokenHash = hashOf(token);
  const caller = accounts.authenticate(tokenHash);
  return caller && { caller, tokenHash, isTokenInHeader: fromQuery === undefined };
}

/** The routes that a token of each scope may use. */
const ADMITTED: Readonly<Record<TokenScope, readonly Access[]>> = {
  full: ['public', 'any', 'read', 'publish', 'full'],
  'read-only': ['public', 'any', 'read'],
  'publish-only': ['public', 'any', 'publish'],
};

/**
 * Throws `ApiError` 403 when the scope of the token is not enough. `access` is `undefined` when there is no such route.
 */
export function authorize({ scope }: Caller, method: string, access: Access | undefined): void {
  // A caller with a scope that may read learns that a route does not exist. For other scopes, every path but their own
  // looks the same.
  const wanted = access ?? (method === 'GET' ? 'read' : 'full');
  if (!ADMITTED[scope].includes(wanted)) throw forbidden(scope);
}

/**
 * Throws `ApiError` 403 unless the token has full scope. For a request that turns out to need more than its route does.
 */
export function authorizeFully(scope: TokenScope | undefined): void {
  if (scope !== 'full') throw forbidden(scope ?? 'no');
}

function forbidden(scope: string): ApiError {
  return new ApiError('forbidden', `${scope} token cannot perform this operation`);
}

function tokenInQuery(rawQuery: string): string | undefined {
  // Most requests end here. The name may be partly escaped, so a query with a percent sign is searched too.
  if (!/qstash|%/i.test(rawQuery)) return undefined;
  for (const piece of rawQuery.split('&')) {
    const [rawName = ''] = piece.split('=', 1);
    // Only this piece is read: a mistake elsewhere in the query is reported only to authenticated callers.
    if (formDecode(rawName)?.toLowerCase() === 'qstash_token') return splitQuery(piece).token;
  }
  return undefined;
}

/** The scheme's name in any letter case, blanks around the token trimmed. */
export function bearerToken(authorization: string | undefined): string | undefined {
  return authorization === undefined ? undefined : /^\s*bearer\s+(\S+)\s*$/i.exec(authorization)?.[1];
}

export function unauthenticated(): ApiError {
  return new ApiError('unauthenticated', 'unable to authenticate: invalid token');
}
