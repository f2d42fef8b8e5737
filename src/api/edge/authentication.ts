/** Authenticates a request by the token in its query or `Authorization` header; the query takes precedence (contract M 2.1). */
import type { TokenScope } from '../../engine/accounts/store.ts';
import { ApiError } from '../../protocol/errors.ts';
import { memo } from '../../protocol/memo.ts';
import { hashToken } from '../../protocol/token.ts';
import { formDecode, splitQuery } from '../../protocol/urls/request-target.ts';
import type { Accounts, Caller } from '../accounts.ts';
import type { Access } from '../route.ts';

/**
 * Cached, since most requests come with the same few tokens. The cache grants no access: the hash is looked up for each
 * request.
 */
const hashOf = memo(hashToken);

/** Longer than any token. A longer text is rejected without being hashed. */
const TOKEN_LENGTH_MAX = 4096;

export interface Admission {
  caller: Caller;
  tokenHash: string;
  isTokenInHeader: boolean;
}

/**
 * Returns `undefined` for an unknown token. Throws `ApiError` 401 if the request has no token. Only hashes of tokens are compared.
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
 * Throws `ApiError` 403 if the scope of the token is insufficient. `access` is `undefined` if there is no such route.
 */
export function authorize({ scope }: Caller, method: string, access: Access | undefined): void {
  // Only a caller with read access learns that a route does not exist. For callers with other scopes, unknown and
  // forbidden paths look the same.
  const wanted = access ?? (method === 'GET' ? 'read' : 'full');
  if (!ADMITTED[scope].includes(wanted)) throw forbidden(scope);
}

/**
 * Throws `ApiError` 403 unless the token has full scope. Call this for a request that needs a higher scope than its
 * route.
 */
export function authorizeFully(scope: TokenScope | undefined): void {
  if (scope !== 'full') throw forbidden(scope ?? 'no');
}

function forbidden(scope: string): ApiError {
  return new ApiError('forbidden', `${scope} token cannot perform this operation`);
}

function tokenInQuery(rawQuery: string): string | undefined {
  // Most requests return here. The name may be partly escaped, so a query with a percent sign is searched too.
  if (!/qstash|%/i.test(rawQuery)) return undefined;
  for (const parameter of rawQuery.split('&')) {
    const [rawName = ''] = parameter.split('=', 1);
    // Only this parameter is parsed: an error elsewhere in the query is reported only to authenticated callers.
    if (formDecode(rawName)?.toLowerCase() === 'qstash_token') return splitQuery(parameter).token;
  }
  return undefined;
}

/** Accepts the scheme's name in any letter case, and trims blanks around the token. */
export function bearerToken(authorization: string | undefined): string | undefined {
  return authorization === undefined ? undefined : /^\s*bearer\s+(\S+)\s*$/i.exec(authorization)?.[1];
}

export function unauthenticated(): ApiError {
  return new ApiError('unauthenticated', 'unable to authenticate: invalid token');
}
