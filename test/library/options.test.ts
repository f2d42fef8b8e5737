/** The environment variables that an endpoint and a client read, as in the official library. */
import { createServer, type Server } from 'node:http';
import { text } from 'node:stream/consumers';
import { Client as QstashClient } from '@upstash/qstash';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Client, Receiver, serve, type WorkflowServeOptions } from '../../packages/workflow/src/index.ts';
import { DEVELOPMENT_ACCOUNTS } from '../../src/config/development.ts';
import { signDelivery } from '../../src/protocol/signature.ts';
import { listen } from '../support/listen.ts';

let server: Server;
let url: string;
let asked: { path: string; authorization: string | undefined; custom: string | undefined }[];

beforeEach(async () => {
  asked = [];
  server = createServer(async (request, response) => {
    const [published] = JSON.parse(await text(request)) as { headers: Record<string, string> }[];
    const { authorization } = request.headers;
    asked.push({ path: request.url ?? '', authorization, custom: published?.headers['upstash-forward-x-custom'] });
    response.end('[{"messageId":"m"}]');
  });
  url = await listen(server);
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

/** Begins a run with a plain request, which makes the endpoint publish to its server. */
async function begin(options: WorkflowServeOptions): Promise<{ status: number; message: string }> {
  const { handler } = serve(async (context) => context.run('one', () => 1), options);
  const answer = await handler(new Request('http://app.test/workflow', { method: 'POST', body: '1' }));
  const { message = '' } = (await answer.json()) as { message?: string };
  return { status: answer.status, message };
}

describe('QSTASH_DEV', () => {
  const dev = () => ({ QSTASH_DEV_PORT: new URL(url).port, QSTASH_URL: 'http://elsewhere.test', QSTASH_TOKEN: 'mine' });

  it.each(['true', '1'])('is %s: the server is the one for development, whatever else is given', async (QSTASH_DEV) => {
    expect(await begin({ env: { QSTASH_DEV, ...dev() } })).toMatchObject({ status: 200 });
    expect(asked).toMatchObject([{ path: '/v2/batch', authorization: `Bearer ${DEVELOPMENT_ACCOUNTS[0].token}` }]);
  });

  it.each(['false', '0', ''])('is "%s": it is not', async (QSTASH_DEV) => {
    const env = { QSTASH_DEV, ...dev(), QSTASH_URL: url };
    expect(await begin({ env })).toMatchObject({ status: 200 });
    expect(asked).toMatchObject([{ authorization: 'Bearer mine' }]);
  });

  it('says what it may be', async () => {
    expect(await begin({ env: { QSTASH_DEV: 'yes', ...dev() } })).toEqual({
      status: 500,
      message: "QSTASH_DEV must be true, 1, false or 0, not 'yes'.",
    });
  });

  it('takes the keys of the server for development, where there are any', async () => {
    const keys = { QSTASH_CURRENT_SIGNING_KEY: 'sig_mine', QSTASH_NEXT_SIGNING_KEY: 'sig_next' };
    const { message } = await begin({ env: { QSTASH_DEV: 'true', ...dev(), ...keys } });
    expect(message).toContain('it has no Upstash-Signature');
  });

  it('gives way to what the client is told', async () => {
    const own = { baseUrl: url, token: 'mine', devMode: false };
    process.env['QSTASH_DEV'] = 'true';
    try {
      await new Client(own).trigger({ url: 'http://app.test' });
    } finally {
      delete process.env['QSTASH_DEV'];
    }
    expect(asked).toMatchObject([{ authorization: 'Bearer mine' }]);
  });
});

describe('qstashClient', () => {
  it('as an official client says where the server is, and what is published with each message', async () => {
    const qstashClient = new QstashClient({ baseUrl: url, token: 'of the client', headers: { 'x-custom': 'yes' } });
    expect(await begin({ qstashClient, env: {} })).toMatchObject({ status: 200 });
    expect(asked).toMatchObject([{ authorization: 'Bearer of the client', custom: 'yes' }]);
  });

  it('as settings holds for the server of the environment', async () => {
    const env = { QSTASH_URL: url, QSTASH_TOKEN: 'mine' };
    const qstashClient = { headers: { 'upstash-forward-x-custom': 'yes' }, enableTelemetry: false };
    expect(await begin({ qstashClient, env })).toMatchObject({ status: 200 });
    expect(asked).toMatchObject([{ authorization: 'Bearer mine', custom: 'yes' }]);
  });

  it('is refused when nothing can be read of it', async () => {
    const { status, message } = await begin({ qstashClient: { http: {} }, env: {} });
    expect([status, message]).toEqual([
      500,
      'qstashClient is not a client of @upstash/qstash: it has no address and no token.',
    ]);
  });
});

describe('a signature', () => {
  const keys = { QSTASH_CURRENT_SIGNING_KEY: 'sig_a', QSTASH_NEXT_SIGNING_KEY: 'sig_b', QSTASH_TOKEN: 'mine' };
  const known = { url: 'http://app.test/workflow' };

  /** Delivers what was signed for `signedFor`. */
  async function deliver(signedFor: string, options: WorkflowServeOptions, variables = {}): Promise<string> {
    const body = '1';
    const signature = signDelivery({
      url: signedFor,
      body: Buffer.from(body),
      signingKey: 'sig_a',
      nowS: Math.floor(Date.now() / 1000),
      jwtId: 'jwt_1',
      dialect: 'upstash',
    });
    const { handler } = serve(async (context) => context.run('one', () => 1), {
      env: { ...keys, ...variables, QSTASH_URL: url },
      ...options,
    });
    const headers = { 'upstash-signature': signature };
    const answer = await handler(new Request('http://proxy.test/workflow', { method: 'POST', body, headers }));
    return answer.status === 200 ? 'taken' : ((await answer.json()) as { message: string }).message;
  }

  it.each([
    ['the option url', known, {}],
    ['the option baseUrl', { baseUrl: 'http://app.test' }, {}],
    ['UPSTASH_WORKFLOW_URL', {}, { UPSTASH_WORKFLOW_URL: 'http://app.test' }],
    ['the option url, with a receiver', { ...known, receiver: receiver() }, {}],
  ])('must be for this endpoint where its URL is known by %s', async (_how, options, variables) => {
    expect(await deliver('http://app.test/workflow', options, variables)).toBe('taken');
    expect(await deliver('http://app.test/workflow?tenant=7', options, variables)).toBe('taken');
    for (const other of [
      'https://customer.test/hook',
      'https://app.test/workflow',
      'http://app.test/other',
      'nothing',
    ]) {
      expect(await deliver(other, options, variables)).toContain('The request does not come from the server');
    }
    expect(asked).toHaveLength(2);
  });

  it('may be for any URL where that of the request is all that is known', async () => {
    expect(await deliver('https://customer.test/hook', {})).toBe('taken');
  });

  function receiver(): Receiver {
    return new Receiver({ currentSigningKey: 'sig_a', nextSigningKey: 'sig_b' });
  }
});

it('says which variable is missing', async () => {
  expect((await begin({ env: {} })).message).toBe('no server address is set: set QSTASH_URL');
  expect((await begin({ env: { QSTASH_URL: url } })).message).toContain('set QSTASH_TOKEN');
});
