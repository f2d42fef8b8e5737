/** Requests that only a raw socket can send: unusual targets and framing, slow and oversized requests (contract M 1.1). */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { mintCheckpointToken } from '../../src/protocol/workflow/checkpoints.ts';
import { eventually } from '../support/eventually.ts';
import { exchange, parseResponse, RawConnection } from './support/raw-http.ts';
import { LIMITS, OTHER_TOKEN, openWorld, TOKEN, type World } from './support/world.ts';

let world: World;
let port: number;
beforeAll(async () => {
  world = await openWorld();
  ({ port } = await world.listen());
});
afterAll(() => world.close());

const HEAD = `Host: waypost\r\nAuthorization: Bearer ${TOKEN}\r\n`;
const CLOSE = 'Connection: close\r\n';

async function post(
  target: string,
  more = '',
  body = '',
): Promise<{ status: number; json: { url?: string; error?: string } }> {
  const length = more.includes('Transfer-Encoding') ? '' : `Content-Length: ${body.length}\r\n`;
  const { status, text } = await exchange(
    port,
    `POST ${target} HTTP/1.1\r\n${HEAD}${CLOSE}${length}${more}\r\n${body}`,
  );
  return { status, json: JSON.parse(text) };
}

describe('the request target is read raw', () => {
  it.each([
    ['https://slow.example/a//b/../c/./d', 'https://slow.example/a//b/../c/./d'],
    ['https://slow.example/a%2Fb%20c', 'https://slow.example/a%2Fb%20c'],
    ['https://slow.example/a/', 'https://slow.example/a/'],
    ['https://slow.example', 'https://slow.example'],
    ['https:/slow.example/one-slash', 'https://slow.example/one-slash'],
    ['HTTPS://Slow.Example/Case', 'HTTPS://Slow.Example/Case'],
    ['https://slow.example/?b=2&a=1&b=2&c=%zz', 'https://slow.example/?b=2&a=1&b=2&c=%zz'],
    ['https://slow.example/?a=1&QSTASH_TOKEN={token}&upstash-retries=1', 'https://slow.example/?a=1'],
    ['https://slow.example/v2/publish/https://other.example', 'https://slow.example/v2/publish/https://other.example'],
    ['https://slow.example/%zz', 'https://slow.example/%zz'],
    ['https://slow.example/a?', 'https://slow.example/a?'],
    ['https://slow.example/a?upstash-retries=1', 'https://slow.example/a'],
  ])('%s', async (destination, url) => {
    const target = destination.replace('{token}', encodeURIComponent(TOKEN));
    for (const start of [
      '/v2/publish/',
      '/V2/Publish/',
      'http://waypost/v2/publish/',
      'http://evil.example:81/v2/publish/',
    ]) {
      const { status, json } = await post(start + target);
      expect([status, json.url]).toEqual([200, url]);
    }
  });

  it.each(['/v2/publish', '/v2/publish/', '/v2/publish/?a=b', '/v2/publish?', '/v2/publish/?'])(
    'says that %s has no destination',
    async (target) => {
      const { status, json } = await post(target);
      expect([status, json.error]).toEqual([400, 'a non-empty destination must be provided']);
    },
  );

  it.each([
    '/',
    '//',
    '/v2',
    '/v2/',
    '/v2//messages',
    '/v2/messages/a/b',
    '/v2/%6cogs',
    '*',
    '/%',
    '/v2/publishing/x',
    'x',
  ])('returns 404 or 400 for %s, never a redirect', async (target) => {
    const { status, json } = await post(target);
    expect([404, 400]).toContain(status);
    expect(json.error).toMatch(/./);
  });

  it('finds routes in any letter case and with trailing slashes', async () => {
    for (const target of ['/v2/logs', '/V2/LOGS', '/v2/logs///', '/v2/logs/?count=1', 'http://x/v2/logs/']) {
      const { status } = await exchange(port, `GET ${target} HTTP/1.1\r\n${HEAD}${CLOSE}\r\n`);
      expect(status).toBe(200);
    }
  });

  it('takes malformed escapes for an id that nobody has', async () => {
    const { status, text } = await exchange(port, `GET /v2/messages/%zz%ff HTTP/1.1\r\n${HEAD}${CLOSE}\r\n`);
    expect([status, text]).toEqual([404, '{"error":"message %zz%ff not found"}']);
  });

  it('accepts a request line of 64 KiB, and refuses a much longer one with 431 (contract M 20.2)', async () => {
    const ids = Array.from({ length: 1_000 }, (_, i) => `msg_${'x'.repeat(55)}${i}`).join(',');
    const long = await exchange(port, `GET /v2/logs?messageIds=${ids} HTTP/1.1\r\n${HEAD}${CLOSE}\r\n`);
    expect([ids.length > 60_000, long.status]).toEqual([true, 200]);
    const many = await exchange(port, `GET /v2/logs?label=${'a,'.repeat(30_000)}b HTTP/1.1\r\n${HEAD}${CLOSE}\r\n`);
    expect(many.status).toBe(200);
    const tooLong = await exchange(port, `GET /v2/logs?label=${'x'.repeat(200_000)} HTTP/1.1\r\n${HEAD}${CLOSE}\r\n`);
    expect([tooLong.status, JSON.parse(tooLong.text).error]).toEqual([431, 'request line and headers are too large']);
  });
});

describe('request bodies', () => {
  const target = '/v2/publish/https://slow.example/body?upstash-delay=1h';

  it('may be chunked, of any content type, on any method that reads one', async () => {
    const chunked = 'Transfer-Encoding: chunked\r\nContent-Type: ;;;nonsense\r\n';
    const { status } = await post(target, chunked, '3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\n\r\n');
    expect(status).toBe(200);
    const body = '{"messageIds":["msg_nope"]}';
    const request = `DELETE /v2/messages HTTP/1.1\r\n${HEAD}${CLOSE}Content-Length: ${body.length}\r\n\r\n${body}`;
    expect((await exchange(port, request)).text).toBe('{"cancelled":0}');
  });

  it('are of no interest with a method that no path has', async () => {
    for (const method of ['QUERY', 'PROPFIND', 'TRACE', 'SEARCH']) {
      for (const path of ['/v2/workflows/hooks/first/wfr_x/e', '/v2/logs', '/nothing']) {
        const { status, text } = await exchange(
          port,
          `${method} ${path} HTTP/1.1\r\n${HEAD}${CLOSE}Content-Length: 2\r\n\r\n{}`,
        );
        expect([status, Object.keys(JSON.parse(text))], `${method} ${path}`).toEqual([
          path === '/nothing' ? 404 : 405,
          ['error'],
        ]);
      }
    }
  });

  it('are asked for with 100 Continue only when they are wanted', async () => {
    const wanted = new RawConnection(port);
    wanted.send(`POST ${target} HTTP/1.1\r\n${HEAD}${CLOSE}Content-Length: 2\r\nExpect: 100-continue\r\n\r\n`);
    await wanted.until((received) => received.includes('\r\n\r\n'));
    expect(wanted.received).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    wanted.send('ok');
    await wanted.closed;
    expect(wanted.received).toContain('HTTP/1.1 200 OK');

    const tooMuch = `Content-Length: ${LIMITS.messageBytesMax + 1}\r\nExpect: 100-continue\r\n`;
    const refused = await exchange(port, `POST ${target} HTTP/1.1\r\n${HEAD}${tooMuch}\r\n`);
    expect([refused.status, refused.headers.toLowerCase().includes('connection: close')]).toEqual([413, true]);

    const unknown = await exchange(
      port,
      `POST ${target} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n`,
    );
    expect(unknown.status).toBe(401);
    const odd = await exchange(port, `POST ${target} HTTP/1.1\r\n${HEAD}Content-Length: 2\r\nExpect: tea\r\n\r\n`);
    expect([odd.status, JSON.parse(odd.text).error]).toEqual([417, expect.any(String)]);
  });

  it('that are too large and chunked get a response while they are still being sent, and end the connection', async () => {
    const before = await world.countStored();
    const connection = new RawConnection(port);
    connection.send(`POST ${target} HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\n`);
    const chunk = Buffer.from(`8000\r\n${'x'.repeat(0x8000)}\r\n`);
    for (let sent = 0; sent <= LIMITS.messageBytesMax; sent += 0x8000) connection.send(chunk);
    await connection.until((received) => received.includes('}'));
    const { status, text } = parseResponse(connection.received);
    expect([status, JSON.parse(text).error]).toEqual([413, expect.stringContaining('quota maxMessageSize exceeded')]);
    connection.send('0\r\n\r\n');
    await connection.closed;
    expect(await world.countStored()).toBe(before);
  });

  it('that are too large get a response, however much their sender still sends', async () => {
    const connection = new RawConnection(port);
    const size = 8 * 1024 * 1024;
    connection.send(`POST ${target} HTTP/1.1\r\n${HEAD}Content-Length: ${size}\r\n\r\n`);
    await connection.until((received) => received.includes('}'));
    for (let sent = 0; sent < size; sent += 0x10000) connection.send(Buffer.alloc(0x10000));
    await connection.closed;
    expect([connection.error, parseResponse(connection.received).status]).toEqual([undefined, 413]);
  });

  it('that nobody reads do not hurt the next request on the connection', async () => {
    const connection = new RawConnection(port);
    const wrong = `POST /v2/nothing HTTP/1.1\r\n${HEAD}Content-Length: 5\r\n\r\nhello`;
    connection.send(`${wrong}GET /healthz HTTP/1.1\r\n${HEAD}${CLOSE}\r\n`);
    await connection.closed;
    expect(connection.received.match(/HTTP\/1\.1 (\d+)/g)).toEqual(['HTTP/1.1 404', 'HTTP/1.1 200']);
  });

  it('that break off leave nothing behind', async () => {
    const before = await world.countStored();
    const connection = new RawConnection(port);
    connection.send(`POST ${target} HTTP/1.1\r\n${HEAD}Content-Length: 500\r\n\r\nhalf`);
    connection.socket.end();
    await connection.closed;
    expect(await world.countStored()).toBe(before);
    expect((await post(target)).status).toBe(200);
  });

  it('are never inflated', async () => {
    const { status } = await post(target, 'Content-Encoding: gzip\r\n', 'not gzip');
    expect(status).toBe(200);
  });
});

describe('what is not a proper request', () => {
  it.each([
    ['no HTTP', 'hello\r\n\r\n', 400],
    ['a missing Host', 'GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
    [
      'two framings',
      `POST /v2/batch HTTP/1.1\r\n${HEAD}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
    ],
    ['two lengths', `POST /v2/batch HTTP/1.1\r\n${HEAD}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc`, 400],
    ['a blank before the colon', `GET /healthz HTTP/1.1\r\nHost : x\r\n\r\n`, 400],
    ['headers above 64 KiB', `GET /healthz HTTP/1.1\r\n${HEAD}${CLOSE}X: ${'x'.repeat(66_000)}\r\n\r\n`, 431],
    ['more than a thousand headers', `GET /healthz HTTP/1.1\r\n${HEAD}${CLOSE}${'a:b\r\n'.repeat(1_200)}\r\n`, 431],
  ])('%s gets a response in JSON, and the connection is closed', async (_name, bytes, status) => {
    const response = await exchange(port, bytes);
    expect([response.status, JSON.parse(response.text).error]).toEqual([status, expect.stringMatching(/./)]);
  });

  it.each([
    ['a header', `GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: `],
    ['a body', `POST /v2/batch HTTP/1.1\r\n${HEAD}Content-Length: 10\r\n\r\n[`],
  ])('%s that is slow gets a response in JSON, and the connection is closed', async (_name, bytes) => {
    const hasty = await openWorld({ limits: { ...LIMITS, headersTimeoutMs: 200, requestTimeoutMs: 300 } });
    const response = await exchange((await hasty.listen()).port, bytes);
    expect([response.status, JSON.parse(response.text).error]).toEqual([408, expect.stringMatching(/./)]);
    await hasty.close();
  });

  it('keeps a header named __proto__ harmless', async () => {
    const more = '__proto__: x\r\nconstructor: y\r\nUpstash-Header-Forward: true\r\n';
    expect((await post('/v2/publish/https://slow.example/', more)).status).toBe(200);
  });
});

describe('the memory for bodies', () => {
  const PUBLISH = '/v2/publish/https://slow.example/';
  /** The token of a call that a run of the first project was delivered with. */
  const CHECKPOINT_TOKEN = mintCheckpointToken({ projectId: 1, runKey: 1, key: 1, claimToken: 1, worker: 0 }, 'sig_1');
  const headOf = (token: string, more: string, target = PUBLISH): string =>
    `POST ${target} HTTP/1.1\r\nHost: waypost\r\nAuthorization: Bearer ${token}\r\n${CLOSE}${more}\r\n`;
  const publishOf = (token: string, bytes: number): string =>
    `${headOf(token, `Content-Length: ${bytes}\r\n`)}${'x'.repeat(bytes)}`;
  let tight: World;
  let tightPort: number;
  let holders: RawConnection[];

  beforeEach(async () => {
    tight = await openWorld({ limits: { ...LIMITS, requestMemoryBytesMax: 50_000 } });
    tightPort = (await tight.listen()).port;
    holders = [];
  });
  afterEach(async () => {
    for (const holder of holders) holder.destroy();
    await Promise.all(holders.map(({ closed }) => closed));
    await tight.close();
  });

  /** Begins a request and sends part of its body; resolves when the server has that part. */
  async function hold(
    declaredBytes: number,
    sentBytes: number,
    { token = TOKEN, target = PUBLISH } = {},
  ): Promise<RawConnection> {
    const begun = new Promise<IncomingMessage>((resolve) => tight.app.server.once('request', resolve));
    const holder = new RawConnection(tightPort);
    holders.push(holder);
    holder.send(headOf(token, `Content-Length: ${declaredBytes}\r\nExpect: 100-continue\r\n`, target));
    const { socket } = await begun;
    await holder.until((received) => received.includes('100 Continue'));
    const headBytes = socket.bytesRead;
    holder.send('x'.repeat(sentBytes));
    await eventually('the part of the body', () => socket.bytesRead === headBytes + sentBytes);
    return holder;
  }

  it('is refused with 503 and Retry-After while others have it', async () => {
    const holder = await hold(40_000, 36_000);
    const second = await exchange(tightPort, publishOf(TOKEN, 20_000));
    expect([second.status, /retry-after: 1/i.test(second.headers)]).toEqual([503, true]);
    holder.send('x'.repeat(4_000));
    await holder.closed;
    expect(holder.received).toContain('HTTP/1.1 200 OK');
    expect((await exchange(tightPort, publishOf(TOKEN, 20_000))).status).toBe(200);
  });

  it('is not held by a body that is only declared', async () => {
    await hold(25_000, 1);
    await hold(25_000, 1);
    expect((await exchange(tightPort, publishOf(OTHER_TOKEN, 25_000))).status).toBe(200);
  });

  it('is left to other projects in part, however much one sends without an end', async () => {
    for (let nth = 0; nth < 4; nth += 1) await hold(10_000, 9_999);
    const fifth = await exchange(tightPort, publishOf(TOKEN, 10_000));
    const other = await exchange(tightPort, publishOf(OTHER_TOKEN, 5_000));
    expect([fifth.status, other.status]).toEqual([503, 200]);
  });

  it.each([
    ['a webhook', 40_000, { target: '/v2/workflows/hooks/first/wfr_a/evt_e', token: 'nobody' }],
    ['a checkpoint', 20_000, { target: '/v2/waypost/checkpoints', token: CHECKPOINT_TOKEN }], // JSON counts twice
  ])('is of the share of the project whose run %s is for', async (_name, bytes, how) => {
    tight.engine.findActiveRun = async () => ({}) as never;
    await hold(bytes + 1, bytes, how);
    const own = await exchange(tightPort, publishOf(TOKEN, 5_000));
    const other = await exchange(tightPort, publishOf(OTHER_TOKEN, 5_000));
    expect([own.status, other.status]).toEqual([503, 200]);
  });
});

it('handles a client that disconnects before its response', async () => {
  const patient = await openWorld();
  const { port: patientPort } = await patient.listen();
  const { engine } = patient;
  const find = engine.findMessage.bind(engine);
  const connection = new RawConnection(patientPort);
  const asked = new Promise<void>((resolve) => {
    engine.findMessage = async (projectId, id) => {
      connection.destroy();
      await connection.closed;
      resolve();
      return find(projectId, id);
    };
  });
  connection.send(`GET /v2/messages/msg_x HTTP/1.1\r\n${HEAD}\r\n`);
  await asked;
  const { status } = await exchange(patientPort, `GET /healthz HTTP/1.1\r\n${HEAD}${CLOSE}\r\n`);
  expect([status, patient.logLines]).toEqual([200, []]);
  await patient.close();
});

it('holds no memory for a caller that leaves while its destination is looked up', async () => {
  const left = Promise.withResolvers<void>();
  const lookUps = [
    async () => {
      leaver.destroy();
      await leaver.closed;
      // Once another request has its response, the server has noticed the end of the first connection.
      await exchange(busyPort, `GET /healthz HTTP/1.1\r\n${HEAD}${CLOSE}\r\n`);
      left.resolve();
    },
  ];
  const busy = await openWorld({
    limits: { ...LIMITS, requestMemoryBytesMax: 50_000 },
    checkDestination: () => async () => {
      await lookUps.shift()?.();
      return undefined;
    },
  });
  const { port: busyPort } = await busy.listen();
  const leaver = new RawConnection(busyPort);
  const head = `POST /v2/publish/https://slow.example/ HTTP/1.1\r\n${HEAD}Content-Length: 40000\r\n`;
  leaver.send(`${head}\r\nhalf`);
  await left.promise;
  const { status } = await exchange(busyPort, `${head}${CLOSE}\r\n${'x'.repeat(40_000)}`);
  expect(status).toBe(200);
  await busy.close();
});

describe('a client that closes its side after its requests', () => {
  /** Publishes that are under way until `look` is called. */
  async function openPatient() {
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const patient = await openWorld({ checkDestination: () => () => promise });
    const halfClosed = new Promise<void>((tell) => {
      patient.app.server.on('connection', (socket) => socket.once('end', () => tell()));
    });
    const { port: patientPort } = await patient.listen();
    const client = new RawConnection(patientPort);
    return { patient, client, halfClosed, look: () => resolve(undefined) };
  }
  const publish = `POST /v2/publish/https://slow.example/ HTTP/1.1\r\n${HEAD}Content-Length: 2\r\n\r\nok`;
  const statuses = (received: string): string[] => received.match(/HTTP\/1\.1 \d+/g) ?? [];

  it('gets the response, and then the end of the connection', async () => {
    const { patient, client, halfClosed, look } = await openPatient();
    client.send(publish);
    client.socket.end();
    await halfClosed;
    look();
    await client.closed;
    expect(client.received).toMatch(/^HTTP\/1\.1 200.*"messageId"/s);
    await patient.close();
  });

  it('gets the responses to all of them, including those that the server has not read yet', async () => {
    const { patient, client, look } = await openPatient();
    client.send(publish.repeat(500));
    client.socket.end();
    await once(client.socket, 'finish');
    look();
    await client.closed;
    expect(statuses(client.received)).toEqual(Array(500).fill('HTTP/1.1 200'));
    await patient.close();
  });

  it('gets the responses to the complete ones, and a refusal of one that is cut off', async () => {
    const { patient, client, halfClosed, look } = await openPatient();
    client.send(`${publish}${publish.slice(0, -1)}`);
    client.socket.end();
    await halfClosed;
    look();
    await client.closed;
    expect(statuses(client.received)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400']);
    await patient.close();
  });

  it('is closed at once when it waits for no response', async () => {
    const client = new RawConnection(port);
    client.send(`GET /healthz HTTP/1.1\r\n${HEAD}\r\n`);
    await client.until((received) => received.includes('}'));
    client.socket.end();
    await client.closed;
    expect(client.error).toBeUndefined();
  });
});

describe('requests that follow each other without waiting', () => {
  const statuses = (received: string): string[] => received.match(/HTTP\/1\.1 \d+/g) ?? [];
  const publish = `POST /v2/publish/https://slow.example/pipelined HTTP/1.1\r\n${HEAD}Content-Length: 2\r\n\r\nok`;

  it('get their responses before bytes that are no request', async () => {
    const before = await world.countStored();
    const connection = new RawConnection(port);
    connection.send(`${publish}${publish}garbage\r\n\r\n`);
    await connection.closed;
    expect(statuses(connection.received)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 400']);
    expect(connection.received).toMatch(/"messageId".*"messageId".*malformed HTTP request/s);
    expect(await world.countStored()).toBeGreaterThan(before);
  });

  it('get their responses before a request that breaks in the middle', async () => {
    const connection = new RawConnection(port);
    connection.send(`${publish}POST /v2/batch HTTP/1.1\r\n${HEAD}Transfer-Encoding: chunked\r\n\r\nzz\r\n`);
    await connection.closed;
    expect(statuses(connection.received)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400']);
  });

  it('all get their responses, in order, however many there are', async () => {
    const connection = new RawConnection(port);
    const targets = Array.from({ length: 500 }, (_, nth) => `/v2/messages/msg_${nth}x`);
    const good = `GET /healthz HTTP/1.1\r\n${HEAD}\r\n`;
    connection.send(targets.map((target) => `GET ${target} HTTP/1.1\r\n${HEAD}\r\n${good}`).join(''));
    connection.send(`GET /healthz HTTP/1.1\r\n${HEAD}${CLOSE}\r\n`);
    await connection.closed;
    expect(statuses(connection.received)).toHaveLength(1_001);
    expect(connection.received.match(/msg_\d+x/g)).toEqual(
      targets.map((target) => target.slice('/v2/messages/'.length)),
    );
  });

  it('have their bodies, however they are cut', async () => {
    const connection = new RawConnection(port);
    const bodies = Array.from({ length: 40 }, (_, nth) => String(nth).repeat(100 * nth));
    const requests = bodies.map(
      (body) =>
        `POST /v2/publish/https://slow.example/cut HTTP/1.1\r\n${HEAD}Content-Length: ${body.length}\r\n\r\n${body}`,
    );
    connection.send(requests.join(''));
    connection.send(`GET /healthz HTTP/1.1\r\n${HEAD}${CLOSE}\r\n`);
    await connection.closed;
    expect(statuses(connection.received)).toEqual(Array.from({ length: 41 }, () => 'HTTP/1.1 200'));
    const ids = connection.received.match(/msg_\w+/g) ?? [];
    const stored = await Promise.all(ids.map((id) => world.ask({ method: 'GET', url: `/v2/messages/${id}` })));
    expect(stored.map(({ json }) => json.body ?? '')).toEqual(bodies);
  });
});

describe('a connection without a token', () => {
  const refusedHead = 'Host: waypost\r\nAuthorization: Bearer nope\r\n';

  it('is closed when it sends a body, which is not read', async () => {
    const connection = new RawConnection(port);
    const one = `POST /v2/batch HTTP/1.1\r\n${refusedHead}Content-Length: 2\r\n\r\n[]`;
    connection.send(one.repeat(3));
    await connection.closed;
    expect(connection.received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 401']);
    expect(connection.received.toLowerCase()).toContain('connection: close');
  });

  it('is closed after sixteen wrong tokens in a row', async () => {
    const connection = new RawConnection(port);
    const refused = `GET /v2/logs HTTP/1.1\r\n${refusedHead}\r\n`;
    connection.send(`${refused.repeat(15)}GET /healthz HTTP/1.1\r\nHost: waypost\r\n\r\n`);
    await connection.until((received) => received.includes('HTTP/1.1 200'));
    connection.send(refused.repeat(100));
    await connection.closed;
    expect(connection.received.match(/HTTP\/1\.1 \d+/g)).toEqual([
      ...Array.from({ length: 15 }, () => 'HTTP/1.1 401'),
      'HTTP/1.1 200',
      ...Array.from({ length: 16 }, () => 'HTTP/1.1 401'),
    ]);
  });
});
