/** Requests that web pages may send to a server on the same machine (decision 026). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Browsers } from '../../src/api/edge/browsers.ts';
import { exchange, parseResponse, RawConnection } from './support/raw-http.ts';
import { openWorld, TOKEN, type World } from './support/world.ts';

const CONSOLE = 'https://console.example';
const PAGE = 'https://evil.example';

let world: World;
let port: number;
beforeAll(async () => {
  const hosts = ['dev.example', '*.tunnel.example'];
  world = await openWorld({ browsers: new Browsers({ origins: [`${CONSOLE}/`], hosts }) });
  ({ port } = await world.listen());
});
afterAll(() => world.close());

/** A request with these headers besides `Host`, and no token but the one in the query. */
async function send(method: string, path: string, headers: Record<string, string>, host = `127.0.0.1:${port}`) {
  const lines = Object.entries({ Host: host, Connection: 'close', 'Content-Length': '0', ...headers });
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  const { status, headers: responseHeaders, text } = await exchange(port, `${method} ${path} HTTP/1.1\r\n${head}\r\n`);
  return { status, responseHeaders: responseHeaders.toLowerCase(), text };
}

const publish = (headers: Record<string, string>, host?: string) =>
  send('POST', `/v2/publish/https://slow.example/?qstash_token=${TOKEN}`, headers, host);

describe('a page of another origin', () => {
  it.each([
    ['which says its origin', { Origin: PAGE }],
    ['in a frame without an origin', { Origin: 'null' }],
    ['of another port of this machine', { Origin: 'http://127.0.0.1:3000' }],
    ['that embeds the URL', { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'no-cors' }],
    ['of a sibling host that embeds the URL', { 'Sec-Fetch-Site': 'same-site', 'Sec-Fetch-Mode': 'no-cors' }],
  ])('%s cannot publish, though it knows the token', async (_, headers) => {
    const { status, responseHeaders, text } = await publish(headers);
    expect(status).toBe(403);
    expect(JSON.parse(text).error).toContain('WAYPOST_ALLOW_ORIGINS');
    expect(responseHeaders).not.toContain('access-control');
  });

  it('is refused before its body is read', async () => {
    const connection = new RawConnection(port);
    const head = `POST /v2/publish/https://slow.example?qstash_token=${TOKEN} HTTP/1.1\r\nHost: x\r\nOrigin: ${PAGE}\r\n`;
    connection.send(`${head}Content-Length: 1000000\r\n\r\n`);
    const { status } = parseResponse(await connection.until((received) => received.includes('\r\n\r\n')));
    connection.destroy();
    expect(status).toBe(403);
  });

  it('is told nothing of what there is: every path is refused, also one that does not exist', async () => {
    for (const path of ['/v2/logs', '/v2/nothing', '/healthz', '/openapi.json', '/']) {
      expect((await send('GET', path, { Origin: PAGE })).status).toBe(403);
    }
    expect(
      (await send('OPTIONS', '/v2/publish/x', { Origin: PAGE, 'Access-Control-Request-Method': 'POST' })).status,
    ).toBe(403);
  });

  it('may link to the interface document', async () => {
    const link = { 'Sec-Fetch-Site': 'cross-site', 'Sec-Fetch-Mode': 'navigate' };
    expect((await send('GET', '/openapi.json', link)).status).toBe(200);
  });

  it('may call a webhook, whose URL is the secret', async () => {
    const { status, text } = await send('POST', '/v2/workflows/hooks/first/wfr_none/e', { Origin: PAGE });
    expect([status, JSON.parse(text).error]).toEqual([404, 'there is no such webhook, or its workflow run is over']);
  });
});

describe('who is let in', () => {
  it.each([
    ['a program that says nothing of origins', {}],
    ['the fetch of Node, which says how it fetches', { 'Sec-Fetch-Mode': 'cors' }],
    ['a page of the server itself', { 'Sec-Fetch-Site': 'same-origin' }],
    ['an address that somebody typed', { 'Sec-Fetch-Site': 'none', 'Sec-Fetch-Mode': 'navigate' }],
  ])('%s', async (_, headers) => {
    expect((await publish(headers)).status).toBe(200);
  });

  it('a page of the server itself that says its origin', async () => {
    expect((await publish({ Origin: `http://127.0.0.1:${port}` })).status).toBe(200);
  });
});

describe('an origin that is named', () => {
  const asks = {
    Origin: CONSOLE,
    'Access-Control-Request-Method': 'POST',
    'Access-Control-Request-Headers': 'authorization,upstash-delay',
  };

  it('is told beforehand, without a token, that it may send what it asks for', async () => {
    const { status, responseHeaders, text } = await send('OPTIONS', '/v2/publish/https://slow.example', asks);
    expect([status, text]).toEqual([200, '']);
    expect(responseHeaders).toContain(`access-control-allow-origin: ${CONSOLE}\r\n`);
    expect(responseHeaders).toContain('access-control-allow-headers: authorization,upstash-delay\r\n');
    expect(responseHeaders).toContain('access-control-allow-methods: get, post, put, patch, delete\r\n');
    expect(responseHeaders).toContain('vary: origin\r\n');
    expect(responseHeaders).not.toContain('private-network');
    expect(responseHeaders).not.toContain('*');
  });

  it('is told that it may reach into a private network, when its browser asks', async () => {
    const { responseHeaders } = await send('OPTIONS', '/v2/logs', {
      ...asks,
      'Access-Control-Request-Private-Network': 'true',
    });
    expect(responseHeaders).toContain('access-control-allow-private-network: true\r\n');
  });

  it('may read all responses, including refusals', async () => {
    for (const [path, expected] of [
      [`/v2/logs?qstash_token=${TOKEN}`, 200],
      ['/v2/logs', 401],
      ['/v2/nothing', 401],
    ] as const) {
      const { status, responseHeaders } = await send('GET', path, { Origin: CONSOLE });
      expect(status).toBe(expected);
      expect(responseHeaders).toContain(`access-control-allow-origin: ${CONSOLE}\r\n`);
      expect(responseHeaders).toContain('vary: origin\r\n');
    }
  });

  it('is not one of its subdomains, nor one that begins like it', async () => {
    for (const Origin of [
      'https://a.console.example',
      'https://console.example.evil.example',
      'http://console.example',
    ]) {
      expect((await publish({ Origin })).status).toBe(403);
    }
  });

  it.each(['*', 'null', 'console.example', 'https://console.example/path', 'ftp://console.example'])(
    'cannot be %s',
    (origin) => {
      expect(() => new Browsers({ origins: [origin], hosts: 'any' })).toThrow(TypeError);
    },
  );
});

describe('the name by which a development server is called', () => {
  it.each([
    '127.0.0.1',
    '10.1.2.3:8080',
    '[::1]:8080',
    'localhost',
    'LOCALHOST:8080',
    'a.localhost',
    'localhost.',
    'waypost',
    'way_post:80',
  ])('may be %s, which no stranger can have', async (host) => {
    expect((await publish({}, host)).status).toBe(200);
  });

  it.each(['host.docker.internal:8080', 'dev.example', 'a.b.tunnel.example'])('may be %s', async (host) => {
    expect((await publish({}, host)).status).toBe(200);
  });

  it.each([
    'evil.example',
    'evil.example.',
    '127.0.0.1.evil.example',
    'tunnel.example',
    'a.dev.example',
    '[evil.example]',
    'localhost.evil.example:8080',
    '0x7f.1',
  ])('is not %s, which a stranger could let lead here', async (host) => {
    const { status, text } = await publish({}, host);
    expect(status).toBe(403);
    expect(JSON.parse(text).error).toContain('WAYPOST_ALLOW_HOSTS');
  });

  it('is checked for webhooks too, and for a page that calls its own origin', async () => {
    expect((await send('POST', '/v2/workflows/hooks/first/wfr_none/e', {}, 'evil.example')).status).toBe(403);
    expect((await publish({ Origin: 'http://evil.example' }, 'evil.example')).status).toBe(403);
  });
});

it('a server in production is called by any name', async () => {
  const production = await openWorld({ browsers: new Browsers({ origins: [], hosts: 'any' }) });
  const headers = { host: 'waypost.example.com' };
  expect((await production.ask({ method: 'GET', url: '/v2/logs', headers })).status).toBe(200);
  await production.close();
});
