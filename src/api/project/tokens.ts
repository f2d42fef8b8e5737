/** Lists, creates and revokes the tokens of the caller's project (docs/decisions/029). Our own addition. */
import { Type } from '@sinclair/typebox';
import { TOKEN_SCOPES, type Token, type TokenScope } from '../../engine/accounts/store.ts';
import { invalidBody } from '../../protocol/errors.ts';
import { objectOf } from '../../protocol/json-objects.ts';
import { isTokenName, TOKEN_NAME_RULE, tokenIdOf } from '../../protocol/token.ts';
import type { ProjectTokens } from '../accounts.ts';
import { SMALL_JSON_LIMIT } from '../limits.ts';
import { readJson } from '../requests/json-body.ts';
import { type ApiResponse, jsonResponse, NO_BODY } from '../response.ts';
import { type Call, type Route, row, type Services } from '../route.ts';
import { exactly, Ms, NewTokenSchema, SessionSchema, shapeOf, TokenNameSchema, TokenScopeSchema } from '../schemas.ts';

const PATH = '/v2/waypost/tokens';

/** A token as the response shows it to the caller whose own token has the hash `ownHash`. */
const TOKEN = shapeOf<[token: Token, ownHash: string]>()(
  {
    tokenId: [Type.String({ pattern: '^tok_[0-9a-f]{16}$' }), ({ tokenHash }) => tokenIdOf(tokenHash)],
    name: [Type.Optional(TokenNameSchema), ({ name }) => name],
    scope: [TokenScopeSchema, ({ scope }) => scope],
    createdAt: [Ms, ({ createdAtMs }) => createdAtMs],
    lastUsedAt: [
      Type.Optional(Type.Integer({ ...Ms, description: 'Unix time in milliseconds, exact to about an hour' })),
      ({ lastUsedAtMs }) => lastUsedAtMs,
    ],
    isOwn: [
      Type.Boolean({ description: 'whether it is the token of this request' }),
      ({ tokenHash }, ownHash) => tokenHash === ownHash,
    ],
  },
  'Token',
);
const TokenListSchema = exactly({ tokens: Type.Array(TOKEN.schema) }, 'TokenList');
const CreatedTokenSchema = exactly(
  {
    ...TOKEN.schema.properties,
    token: Type.String({ minLength: 1, description: 'the token itself, shown only once' }),
  },
  'CreatedToken',
);

export function tokenRoutes({ tokens }: Services): Route[] {
  return tokens ? routesFor(tokens) : [];
}

function routesFor(tokens: ProjectTokens): Route[] {
  async function list({ projectId, tokenHash }: Call): Promise<ApiResponse> {
    const tokensOfProject = await tokens.list(projectId);
    return jsonResponse(200, { tokens: tokensOfProject.map((token) => TOKEN.view(token, tokenHash)) });
  }

  async function make({ projectId, tokenHash: by, body }: Call): Promise<ApiResponse> {
    const newToken = readNewToken(await readJson(body, SMALL_JSON_LIMIT));
    const { token, secret } = await tokens.create({ projectId, by, ...newToken });
    return {
      ...jsonResponse(201, { token: secret, ...TOKEN.view(token, by) }),
      headers: { 'cache-control': 'no-store' },
    };
  }

  async function revoke({ projectId, tokenHash: by, id: tokenId }: Call): Promise<ApiResponse> {
    await tokens.revoke({ projectId, by, tokenId });
    return NO_BODY;
  }

  const headerTokenOnly = { isTokenInHeaderOnly: true } as const;
  return [
    {
      ...row('full', 'GET', PATH, 'listTokens'),
      ...headerTokenOnly,
      summary: 'Lists the tokens of the project, oldest first. The tokens themselves are not stored.',
      responses: { 200: TokenListSchema },
      handle: list,
    },
    {
      ...row('full', 'POST', PATH, 'createToken'),
      ...headerTokenOnly,
      summary: 'Creates a token for the project and shows it once.',
      takes: { body: NewTokenSchema },
      refusals: [412],
      responses: { 201: CreatedTokenSchema },
      handle: make,
    },
    {
      ...row('full', 'DELETE', `${PATH}/:tokenId`, 'revokeToken'),
      ...headerTokenOnly,
      summary:
        'Revokes a token of the project: after the response, no worker accepts it. The last full token cannot be revoked.',
      refusals: [409],
      handle: revoke,
    },
  ];
}

/** Throws 400. */
function readNewToken(body: unknown): { scope: TokenScope; name?: string } {
  const { scope: word, name } = objectOf(body, 'an object is needed');
  const scope = TOKEN_SCOPES.find((known) => known === word);
  if (scope === undefined) throw invalidBody(`scope must be one of ${TOKEN_SCOPES.join(', ')}`);
  if (name === undefined || name === null) return { scope };
  if (typeof name !== 'string' || !isTokenName(name)) throw invalidBody(`name ${TOKEN_NAME_RULE}`);
  return { scope, name };
}

/** Reads the project and the permissions of the caller's token, so that the console can hide actions that are not allowed. */
export function sessionRoutes({ accounts }: Services): Route[] {
  return [
    {
      ...row('any', 'GET', '/v2/waypost/session', 'getSession'),
      summary: 'Reads the project and the permissions of the token.',
      responses: { 200: SessionSchema },
      handle: ({ projectId, scope, tokenName }) =>
        jsonResponse(200, { project: accounts.projectName(projectId), scope, tokenName }),
    },
  ];
}
