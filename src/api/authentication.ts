/** Who calls? The token comes in the query or in `Authorization`; the query decides (contract M 2.1). */
import type { TokenScope } from '../engine/stores.ts';
import { ApiError } from '../protocol/errors.ts';
import { memo } from '../protocol/memo.ts';
import { formDecode } from '../protocol/percent-encoding.ts';
import { splitQuery } from '../protocol/request-target.ts';
import { hashToken } from '../protocol/token.ts';
import type { Accounts, Caller } from './accounts.ts';
import type { Access } from './route.ts';

/** The same few tokens come with every request. What is remembered grants nothing: the hash is looked up each time. */
const hashOf = memo(hashToken);

/** Longer than any token; what is longer is not worth hashing. */
const TOKEN_LENGTH_MAX = 4096;

export interface Admission {
  caller: Caller;
  isTokenInHeader: boolean;
}

/** `undefined`: nobody has that token. Throws `ApiError` 401 without one. The token is compared only as a hash. */
export function authenticate(
  accounts: Accounts,
  authorization: string | undefined,
  rawQuery: string,
): Admission | undefined {
  const fromQuery = tokenInQuery(rawQuery);
  const token = fromQuery ?? bearerToken(authorization);
  if (token === undefined || token === '' || token.length > TOKEN_LENGTH_MAX) throw unauthenticated();
  const caller = accounts.authenticate(hashOf(token));
  return caller && { caller, isTokenInHeader: fromQuery === undefined };
}

/** What a token of each scope is admitted to. */
const ADMITTED: Readonly<Record<TokenScope, readonly Access[]>> = {
  full: ['public', 'read', 'publish', 'full'],
  'read-only': ['public', 'read'],
  'publish-only': ['public', 'publish'],
};

/** Throws `ApiError` 403 when the scope of the token is not enough. `undefined`: there is no such route. */
export function authorize({ scope }: Caller, method: string, access: Access | undefined): void {
  // Whoever may read is told which routes there are not; to others every path but their own looks alike.
  const wanted = access ?? (method === 'GET' ? 'read' : 'full');
  if (!ADMITTED[scope].includes(wanted)) throw forbidden(scope);
}

/** Throws `ApiError` 403 unless the token is a full one: where a request turns out to want more than its route says. */
export function authorizeFully(scope: TokenScope | undefined): void {
  if (scope !== 'full') throw forbidden(scope ?? 'no');
}

function forbidden(scope: string): ApiError {
  return new ApiError('forbidden', `${scope} token cannot perform this operation`);
}

function tokenInQuery(rawQuery: string): string | undefined {
  // Most requests end here. The name may be escaped in part, so a percent sign sends them the long way.
  if (!/qstash|%/i.test(rawQuery)) return undefined;
  for (const piece of rawQuery.split('&')) {
    const [rawName = ''] = piece.split('=', 1);
    // Only the piece itself is read: what is wrong elsewhere in the query is told to callers who are known.
    if (formDecode(rawName)?.toLowerCase() === 'qstash_token') return splitQuery(piece).token;
  }
  return undefined;
}

/** The scheme's name in any letter case, blanks around the token trimmed. */
function bearerToken(authorization: string | undefined): string | undefined {
  return authorization === undefined ? undefined : /^\s*bearer\s+(\S+)\s*$/i.exec(authorization)?.[1];
}

export function unauthenticated(): ApiError {
  return new ApiError('unauthenticated', 'unable to authenticate: invalid token');
}
