/** The responses at `/` and `/console` to browsers and to other clients. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Browsers } from '../../src/api/edge/browsers.ts';
import { readConsole } from '../../src/server/console-files.ts';
import { exchange, parseResponse, RawConnection } from './support/raw-http.ts';
import { openWorld, type World } from './support/world.ts';

const INDEX = `<!doctype html><title>Waypost</title>${'<p>the same again</p>'.repeat(20)}`;
const PAGE = '<!doctype html><title>the interface</title>';
const SCRIPT = `console.log(${'1 + '.repeat(200)}1);`;
const FILES: Readonly<Record<string, string>> = {
  'index.html': INDEX,
  'docs.html': PAGE,
  'icon.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>',
  'assets/index-1a2b.js': SCRIPT,
  'assets/tiny-3c4d.css': 'a{}',
};

let folder: string;
let world: World;
let port: number;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'waypost-console-'));
  writeFileSync(join(folder, 'secret.txt'), 'not of the console');
  const built = join(folder, 'console');
  build(built);
  const console = { version: '1.2.3', developmentToken: 'known to all', readFiles: () => readConsole(built) };
  world = await openWorld({ console, browsers: new Browsers({ origins: [], hosts: [] }) });
  ({ port } = await world.listen());
});
afterAll(async () => {
  await world.close();
  rmSync(folder, { recursive: true, force: true });
});

function build(into: string): void {
  for (const [name, text] of Object.entries(FILES)) {
    mkdirSync(dirname(join(into, name)), { recursive: true });
    writeFileSync(join(into, name), text);
  }
}

interface Got {
  status: number | undefined;
  headers: Record<string, string | string[] | undefined>;
  body: Buffer;
}

/** Sends the path as it is written, follows no redirect and unpacks nothing, as `fetch` would. */
function get(path: string, headers: Record<string, string> = {}, method = 'GET', at = port): Promise<Got> {
  return new Promise((resolve, reject) => {
    request({ host: '127.0.0.1', port: at, path, method, headers }, (response) => {
      buffer(response).then(
        (body) => resolve({ status: response.statusCode, headers: response.headers, body }),
        reject,
      );
    })
      .on('error', reject)
      .end();
  });
}

describe('the root', () => {
  it('leads a browser to the console', async () => {
    const { status, headers } = await get('/', { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' });
    expect([status, headers['location']]).toEqual([302, '/console/']);
  });

  it.each([{}, { accept: '*/*' }, { accept: 'application/json' }])(
    'tells a program that sends %j what this is',
    async (headers) => {
      const { status, body } = await get('/', headers);
      expect([status, JSON.parse(body.toString())]).toEqual([
        200,
        { name: 'Waypost', version: '1.2.3', console: '/console/', docs: '/docs', openapi: '/openapi.json' },
      ]);
    },
  );

  it('is nothing to publish to', async () => {
    expect((await get('/', {}, 'POST')).status).toBe(404);
    expect((await get('/console/', {}, 'POST')).status).toBe(404);
  });
});

describe('the console', () => {
  it('is at a path with a slash at its end, and without one leads there', async () => {
    const { status, headers } = await get('/console');
    expect([status, headers['location']]).toEqual([302, '/console/']);
    expect((await get('/console/')).body.toString()).toBe(INDEX);
  });

  it.each(['/console/index.html', '/console/messages', '/console/runs/wfr_1?tab=journal', '/console/a/b/c.d'])(
    'finds its screens by the path: %s is the application, asked for anew each time',
    async (path) => {
      const { status, headers, body } = await get(path);
      expect([status, body.toString()]).toEqual([200, INDEX]);
      expect(headers).toMatchObject({ 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache' });
    },
  );

  it('lets a browser keep for a year what has a hash in its name', async () => {
    const { headers, body } = await get('/console/assets/index-1a2b.js');
    expect(body.toString()).toBe(SCRIPT);
    expect(headers).toMatchObject({
      'content-type': 'text/javascript; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
    });
    expect((await get('/console/icon.svg')).headers).toMatchObject({
      'content-type': 'image/svg+xml',
      'cache-control': 'no-cache',
    });
  });

  it('does not take the application for a script of an earlier release', async () => {
    expect((await get('/console/assets/index-0000.js')).status).toBe(404);
  });

  it('compresses for whoever unpacks, unless nothing is saved', async () => {
    const { headers, body } = await get('/console/assets/index-1a2b.js', { 'accept-encoding': 'br, gzip;q=0.8' });
    expect(headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'Origin, Accept-Encoding' });
    expect(body.length).toBeLessThan(SCRIPT.length / 2);
    expect(gunzipSync(body).toString()).toBe(SCRIPT);
    const plain = await get('/console/assets/index-1a2b.js', { 'accept-encoding': 'gzip;q=0, br' });
    expect(plain.headers['content-encoding']).toBeUndefined();
    const tiny = await get('/console/assets/tiny-3c4d.css', { 'accept-encoding': 'gzip' });
    expect([tiny.headers['content-encoding'], tiny.body.toString()]).toEqual([undefined, 'a{}']);
  });

  it('says that nothing has changed to a browser that has the same', async () => {
    const etag = String((await get('/console/')).headers['etag']);
    const again = await get('/console/', { 'if-none-match': etag, 'accept-encoding': 'gzip' });
    expect([again.status, again.body.length, again.headers['etag']]).toEqual([304, 0, etag]);
    expect(again.headers['content-length']).toBeUndefined();
    expect((await get('/console/', { 'if-none-match': 'W/"another"' })).status).toBe(200);
  });

  it('returns the same headers for HEAD, and no body', async () => {
    const { status, headers, body } = await get('/console/', {}, 'HEAD');
    expect([status, headers['content-length'], body.length]).toEqual([200, String(INDEX.length), 0]);
  });

  it.each([
    '/console/../secret.txt',
    '/console/..%2fsecret.txt',
    '/console/%2e%2e/secret.txt',
    '/console/assets/../../secret.txt',
    '/console//etc/passwd',
    '/console/..\\secret.txt',
  ])('serves nothing but its own files: not %s', async (path) => {
    expect((await get(path)).body.toString()).not.toMatch(/not of the console|root:/);
  });

  it('runs no code but its own, calls no other server, and is shown in no frame', async () => {
    for (const path of ['/console/', '/console/assets/index-1a2b.js', '/console/environment.json', '/', '/docs']) {
      const { headers } = await get(path);
      expect(headers).toMatchObject({
        'content-security-policy':
          "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
          "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        'cross-origin-opener-policy': 'same-origin',
        'cross-origin-resource-policy': 'same-origin',
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
      });
      expect(headers['set-cookie']).toBeUndefined();
    }
  });

  it('is read from the disk once, however many ask for it at the same time', async () => {
    let reads = 0;
    const readFiles = (): ReturnType<typeof readConsole> => {
      reads += 1;
      return readConsole(join(folder, 'console'));
    };
    const other = await openWorld({ console: { version: '1.2.3', readFiles } });
    const { port: at } = await other.listen();
    const got = await Promise.all(Array.from({ length: 5 }, () => get('/console/', {}, 'GET', at)));
    expect([got.map(({ status }) => status), reads]).toEqual([[200, 200, 200, 200, 200], 1]);
    await other.close();
  });

  it('responds before the body of the request has arrived', async () => {
    const connection = new RawConnection(port);
    connection.send('GET /console/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n');
    const { status } = parseResponse(await connection.until((received) => received.includes('\r\n\r\n')));
    connection.destroy();
    expect(status).toBe(200);
  });
});

it('says how it is built while it is not, and is there as soon as it is', async () => {
  const built = join(folder, 'built later');
  const other = await openWorld({ console: { version: '1.2.3', readFiles: () => readConsole(built) } });
  const { port: at } = await other.listen();
  const { status, headers, body } = await get('/console/', {}, 'GET', at);
  expect([status, headers['content-type']]).toEqual([404, 'text/html; charset=utf-8']);
  expect(body.toString()).toContain('npm run console');
  build(built);
  expect((await get('/console/', {}, 'GET', at)).body.toString()).toBe(INDEX);
  await other.close();
});

it('serves the page of the interface at /docs, without a token', async () => {
  const { status, headers, body } = await get('/docs');
  expect([status, headers['content-type'], body.toString()]).toEqual([200, 'text/html; charset=utf-8', PAGE]);
});

describe('what the console must know before it can call', () => {
  it('is in development the token that everybody knows', async () => {
    const { headers, body } = await get('/console/environment.json');
    expect(JSON.parse(body.toString())).toEqual({ mode: 'dev', token: 'known to all', version: '1.2.3' });
    expect(headers['cache-control']).toBe('no-store');
  });

  it('has no token in production', async () => {
    const other = await openWorld();
    const { port: at } = await other.listen();
    const { body } = await get('/console/environment.json', {}, 'GET', at);
    expect(JSON.parse(body.toString())).toEqual({ mode: 'serve', version: '1.2.3' });
    await other.close();
  });

  it('is also where the documentation is, if there is a site', async () => {
    const docsUrl = 'https://docs.example.com/waypost';
    const other = await openWorld({ console: { version: '1.2.3', docsUrl, readFiles: async () => undefined } });
    const { port: at } = await other.listen();
    const { body } = await get('/console/environment.json', {}, 'GET', at);
    expect(JSON.parse(body.toString())).toEqual({ mode: 'serve', version: '1.2.3', docsUrl });
    await other.close();
  });

  it.each([
    ['a page of another origin', 'Host: localhost\r\nOrigin: https://evil.example\r\n'],
    ['a page of another origin that loads it as a script', 'Host: localhost\r\nSec-Fetch-Site: cross-site\r\n'],
    ['a page whose own name leads here', 'Host: evil.example\r\n'],
    ['a page whose own name leads here and says its origin', 'Host: evil.example\r\nOrigin: http://evil.example\r\n'],
  ])('is refused to %s, as all of the console is', async (_, head) => {
    for (const path of ['/console/environment.json', '/console/', '/console', '/']) {
      const { status, text } = await exchange(port, `GET ${path} HTTP/1.1\r\n${head}Connection: close\r\n\r\n`);
      expect([path, status]).toEqual([path, 403]);
      expect(text).not.toContain('known to all');
    }
  });
});
