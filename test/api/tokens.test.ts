/** Only full tokens list, create and revoke the tokens of their project, over a real socket. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { hashToken, tokenIdOf } from '../../src/protocol/token.ts';
import {
  type Json,
  OTHER_TOKEN,
  openWorld,
  PUBLISH_ONLY_TOKEN,
  READ_ONLY_TOKEN,
  TOKEN,
  type World,
} from './support/world.ts';

const PATH = '/v2/waypost/tokens';
const idOf = (token: string): string => tokenIdOf(hashToken(token));

let world: World;
let url: string;
beforeEach(async () => {
  world = await openWorld();
  ({ url } = await world.listen());
});
afterEach(() => world.close());

interface Reply {
  status: number;
  json: Json;
  headers: Headers;
}

async function ask(
  method: string,
  path: string,
  { token = TOKEN, body }: { token?: string; body?: Json } = {},
): Promise<Reply> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}` },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, json: text === '' ? undefined : JSON.parse(text), headers: response.headers };
}

const make = (body: Json, token = TOKEN) => ask('POST', PATH, { token, body });
const revoke = (tokenId: string, token = TOKEN) => ask('DELETE', `${PATH}/${tokenId}`, { token });
const list = async (token = TOKEN) => (await ask('GET', PATH, { token })).json.tokens;
/** The status of a request that each token may make which may read. */
const statusOf = async (token: string) => (await ask('GET', '/v2/queues', { token })).status;

describe('a new token', () => {
  it('is shown once, and is valid when it is returned', async () => {
    const { status, json, headers } = await make({ name: 'till in Ulm', scope: 'read-only' });
    expect([status, headers.get('cache-control')]).toEqual([201, 'no-store']);
    const { token, ...shown } = json;
    expect(shown).toEqual({
      tokenId: idOf(token),
      name: 'till in Ulm',
      scope: 'read-only',
      createdAt: expect.any(Number),
      isOwn: false,
    });
    expect(await statusOf(token)).toBe(200);
    expect((await ask('GET', '/v2/keys', { token })).status).toBe(403);
    expect(await list()).toContainEqual(shown);
    expect(JSON.stringify([await list(), world.logLines])).not.toContain(token);
    expect(world.logLines).toContainEqual({
      event: 'token_made',
      fields: { project: 'first', tokenId: shown.tokenId, scope: 'read-only', by: idOf(TOKEN) },
    });
  });

  it('belongs to the project of the token that made it', async () => {
    const { token, tokenId } = (await make({ scope: 'full' }, OTHER_TOKEN)).json;
    expect((await list()).map((each: Json) => each.tokenId)).not.toContain(tokenId);
    expect((await list(token)).map((each: Json) => [each.tokenId, each.isOwn]).toSorted()).toEqual(
      [
        [idOf(OTHER_TOKEN), false],
        [tokenId, true],
      ].toSorted(),
    );
  });

  it.each([
    ['', 'an object is needed'],
    ['[]', 'an object is needed'],
    ['{', 'not valid JSON in UTF-8'],
    ['{}', 'scope must be one of full, publish-only, read-only'],
    ['{"scope":"all"}', 'scope must be one of full, publish-only, read-only'],
    ['{"scope":"full","name":""}', 'name has 1 to 100 printable characters'],
    ['{"scope":"full","name":" "}', 'name has 1 to 100 printable characters'],
    ['{"scope":"full","name":"a\\u001b[2Jb"}', 'name has 1 to 100 printable characters'],
    ['{"scope":"full","name":7}', 'name has 1 to 100 printable characters'],
    [JSON.stringify({ scope: 'full', name: 'x'.repeat(101) }), 'name has 1 to 100 printable characters'],
  ])('is refused for the body %s', async (body, reason) => {
    const { status, json } = await make(body);
    expect([status, json.error]).toEqual([400, `invalid request body: ${reason}`]);
    expect(await list()).toHaveLength(3);
  });

  it('is refused when the project has a hundred, until one is revoked', async () => {
    while ((await list()).length < 100) expect((await make({ scope: 'read-only' })).status).toBe(201);
    const { status, json } = await make({ scope: 'read-only' });
    expect([status, json.error]).toEqual([412, 'quota maxTokens exceeded, current limit: 100']);
    expect((await make({ scope: 'read-only' }, OTHER_TOKEN)).status).toBe(201);
    expect((await revoke(idOf(READ_ONLY_TOKEN))).status).toBe(200);
    expect((await make({ scope: 'read-only' })).status).toBe(201);
  });
});

describe('the list', () => {
  it('has all tokens of the project with their scopes, and says which is the own one', async () => {
    const tokens: Json[] = await list();
    expect(tokens.map(({ tokenId, scope, isOwn }) => [tokenId, scope, isOwn]).toSorted()).toEqual(
      [
        [idOf(TOKEN), 'full', true],
        [idOf(READ_ONLY_TOKEN), 'read-only', false],
        [idOf(PUBLISH_ONLY_TOKEN), 'publish-only', false],
      ].toSorted(),
    );
  });
});

describe('a revoked token', () => {
  it('lets nobody in any more, and its id is not there a second time', async () => {
    const { token, tokenId } = (await make({ scope: 'full' })).json;
    expect(await statusOf(token)).toBe(200);
    expect((await revoke(tokenId)).status).toBe(200);
    expect(await statusOf(token)).toBe(401);
    expect(await revoke(tokenId)).toMatchObject({ status: 404, json: { error: `token ${tokenId} not found` } });
    expect(world.logLines).toContainEqual({ event: 'token_revoked', fields: { tokenId, by: idOf(TOKEN) } });
  });

  it('may be the own one, as long as another full token is left', async () => {
    expect(await revoke(idOf(TOKEN))).toMatchObject({
      status: 409,
      json: { error: expect.stringContaining('last full token') },
    });
    expect(await statusOf(TOKEN)).toBe(200);
    const { token } = (await make({ scope: 'full' })).json;
    expect((await revoke(idOf(TOKEN))).status).toBe(200);
    expect(await statusOf(TOKEN)).toBe(401);
    expect((await revoke(idOf(token), token)).status).toBe(409);
  });
});

describe('the routes', () => {
  it.each(['GET', 'POST', 'DELETE'])(
    'refuse %s with a token in the query, and say where it belongs',
    async (method) => {
      const path = method === 'DELETE' ? `${PATH}/${idOf(READ_ONLY_TOKEN)}` : PATH;
      const body = method === 'POST' ? { scope: 'full' } : undefined;
      const reply = await ask(method, `${path}?qstash_token=${encodeURIComponent(TOKEN)}`, { body });
      expect([reply.status, reply.json.error]).toEqual([403, expect.stringContaining('in the header Authorization')]);
      expect(await list()).toHaveLength(3);
    },
  );

  it('are not there where tokens are published, as in development', async () => {
    await world.close();
    world = await openWorld({ tokens: undefined });
    ({ url } = await world.listen());
    const replies = [await ask('GET', PATH), await make({ scope: 'full' }), await revoke(idOf(TOKEN))];
    expect(replies.map(({ status }) => status)).toEqual([404, 404, 404]);
    expect((await ask('GET', '/openapi.json')).json.paths).not.toHaveProperty([PATH]);
  });
});
