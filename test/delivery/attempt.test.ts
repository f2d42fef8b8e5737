import { randomBytes } from 'node:crypto';
import { deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { Receiver } from '@upstash/qstash';
import { describe, expect, it } from 'vitest';
import { verifySignature } from '../../src/protocol/signature.ts';
import { claimOf, KEEPS_BODY, openDelivery, type Received, SIGNING_KEY, startEndpoint, untouched } from './support.ts';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

describe('the request', () => {
  it.each(METHODS)('sends the stored bytes unchanged with %s', async (method) => {
    const endpoint = await startEndpoint();
    const delivery = openDelivery();
    const bodies = [
      Buffer.from('{"a":1}'),
      Buffer.from([0, 1, 2, 0xff, 0xfe, 0, 13, 10]),
      new Uint8Array(0),
      randomBytes(1024 * 1024),
    ];
    for (const body of bodies) {
      const outcome = await delivery.attempt(claimOf(endpoint.origin, { method, body }), untouched());
      expect(outcome).toMatchObject({ kind: 'responded', status: 200 });
    }
    expect(endpoint.received.map((one) => one.method)).toEqual(bodies.map(() => method));
    expect(endpoint.received.map((one, nth) => one.body.equals(bodies[nth] ?? Buffer.from('?')))).toEqual(
      bodies.map(() => true),
    );
  });

  it('sends only the slice of memory that a body is', async () => {
    const endpoint = await startEndpoint();
    const memory = new Uint8Array([1, 2, 3, 4, 5, 6]);
    await openDelivery().attempt(claimOf(endpoint.origin, { body: memory.subarray(2, 4) }), untouched());
    expect([...(endpoint.received[0]?.body ?? [])]).toEqual([3, 4]);
  });

  it('says Content-Length: 0 for an empty POST and nothing for an empty GET', async () => {
    const endpoint = await startEndpoint();
    const delivery = openDelivery();
    await delivery.attempt(claimOf(endpoint.origin, { method: 'POST' }), untouched());
    await delivery.attempt(claimOf(endpoint.origin, { method: 'GET' }), untouched());
    expect(endpoint.received.map((one) => one.headers['content-length'])).toEqual(['0', undefined]);
    expect(endpoint.received.every((one) => one.headers['content-type'] === undefined)).toBe(true);
  });

  it('has the stored headers and those that the server adds, no others', async () => {
    const endpoint = await startEndpoint();
    const header = { 'Content-Type': ['application/json'], 'X-Api-Key': ['one', 'two'], 'X-Latin': ['é'] };
    await openDelivery().attempt(
      claimOf(`${endpoint.origin}/p?q=1`, { header, body: Buffer.from('{}') }, 2),
      untouched(),
    );
    expect(linesOf(endpoint.received[0])).toEqual([
      ['host', `127.0.0.1:${endpoint.port}`],
      ['connection', 'keep-alive'],
      ['Content-Type', 'application/json'],
      ['X-Api-Key', 'one'],
      ['X-Api-Key', 'two'],
      ['X-Latin', 'é'],
      ['User-Agent', 'Upstash-QStash'],
      ['Upstash-Signature', expect.any(String)],
      ['Upstash-Message-Id', 'msg_test'],
      ['Upstash-Retried', '2'],
      ['Accept-Encoding', 'identity'],
      ['content-length', '2'],
    ]);
  });

  it('names group, schedule, caller and region when they are known', async () => {
    const endpoint = await startEndpoint();
    const settings = { topicName: 'group', scheduleId: 'scd_1', queueName: 'q', endpointName: 'e', labels: ['l'] };
    const claimed = claimOf(endpoint.origin, { callerIp: '203.0.113.9', settings });
    await openDelivery({ region: 'EU-WEST-1' }).attempt(claimed, untouched());
    const added = linesOf(endpoint.received[0]).filter(
      ([name]) => name?.startsWith('Upstash-') && name !== 'Upstash-Signature',
    );
    expect(added).toEqual([
      ['Upstash-Message-Id', 'msg_test'],
      ['Upstash-Retried', '0'],
      ['Upstash-Topic-Name', 'group'],
      ['Upstash-Schedule-Id', 'scd_1'],
      ['Upstash-Caller-Ip', '203.0.113.9'],
      ['Upstash-Region', 'EU-WEST-1'],
    ]);
  });

  it('speaks the dialect in which the message was published', async () => {
    const endpoint = await startEndpoint();
    await openDelivery().attempt(claimOf(endpoint.origin, { settings: { dialect: 'waypost' } }), untouched());
    const headers = endpoint.received[0]?.headers ?? {};
    expect(headers).toMatchObject({
      'waypost-message-id': 'msg_test',
      'waypost-retried': '0',
      'user-agent': 'Waypost',
    });
    expect(Object.keys(headers).filter((name) => name.startsWith('upstash'))).toEqual([]);
    const token = String(headers['waypost-signature']);
    const check = { token, signingKeys: [SIGNING_KEY], body: new Uint8Array(0), nowS: Date.now() / 1000 };
    expect(verifySignature({ ...check, dialect: 'waypost', url: endpoint.origin })).toMatchObject({ valid: true });
  });

  it('prefers a forwarded User-Agent and Content-Type, and its own value of any other header', async () => {
    const endpoint = await startEndpoint();
    const header = {
      'User-Agent': ['mine'],
      'Content-Type': ['text/plain'],
      'Upstash-Message-Id': ['forged'],
      'Upstash-Signature': ['forged'],
      'Upstash-Retried': ['99'],
      'Accept-Encoding': ['gzip'],
      'Upstash-Workflow-Runid': ['wfr_1'],
    };
    await openDelivery().attempt(claimOf(endpoint.origin, { header }), untouched());
    const raw = endpoint.received[0]?.rawHeaders ?? [];
    expect(raw).not.toContain('forged');
    expect(raw).not.toContain('99');
    expect(endpoint.received[0]?.headers).toMatchObject({
      'user-agent': 'mine',
      'content-type': 'text/plain',
      'upstash-message-id': 'msg_test',
      'accept-encoding': 'identity',
      'upstash-workflow-runid': 'wfr_1',
    });
  });

  it('turns user info into Basic credentials, unless Authorization is forwarded', async () => {
    const endpoint = await startEndpoint();
    const delivery = openDelivery();
    const url = `http://us%40er:p%3Aw@127.0.0.1:${endpoint.port}/x`;
    await delivery.attempt(claimOf(url), untouched());
    await delivery.attempt(claimOf(url, { header: { Authorization: ['Bearer t'] } }), untouched());
    expect(endpoint.received.map((one) => one.headers.authorization)).toEqual([
      `Basic ${Buffer.from('us@er:p:w').toString('base64')}`,
      'Bearer t',
    ]);
    expect(endpoint.received[0]?.headers.host).toBe(`127.0.0.1:${endpoint.port}`);
  });

  it.each([
    ['', '/'],
    ['?a=b', '/?a=b'],
    ['/a/../b/./c', '/a/../b/./c'],
    ['/a%2Fb?x=%20&y=a+b', '/a%2Fb?x=%20&y=a+b'],
    ['/{x}|"<>^`', '/{x}|"<>^`'],
    ['/a#part', '/a'],
    ['/ä b', '/%C3%A4%20b'],
  ])('asks for the path as it was written: %s', async (written, sent) => {
    const endpoint = await startEndpoint();
    await openDelivery().attempt(claimOf(`${endpoint.origin}${written}`), untouched());
    expect(endpoint.received.map((one) => one.url)).toEqual([sent]);
  });

  it.each([
    ['http://127.0.0.1:PORT/é?q=ü', 'http://127.0.0.1:PORT/%C3%A9?q=%C3%BC'],
    ['http://user:secret@127.0.0.1:PORT/x', 'http://127.0.0.1:PORT/x'],
    ['http://127.0.0.1:PORT/a/../b%2f', 'http://127.0.0.1:PORT/a/../b%2f'],
    ['http://127.0.0.1:PORT', 'http://127.0.0.1:PORT'],
  ])('signs the URL as it is requested: %s', async (written, signed) => {
    const endpoint = await startEndpoint();
    const urlOf = (text: string) => text.replace('PORT', String(endpoint.port));
    await openDelivery().attempt(claimOf(urlOf(written)), untouched());
    const [, claims = ''] = String(endpoint.received[0]?.headers['upstash-signature']).split('.');
    expect(JSON.parse(Buffer.from(claims, 'base64url').toString()).sub).toBe(urlOf(signed));
  });

  it.each(['Transfer-Encoding', 'Expect', 'Upgrade', 'Keep-Alive'])(
    'reports a header that cannot be sent: %s',
    async (name) => {
      const endpoint = await startEndpoint();
      const outcome = await openDelivery().attempt(
        claimOf(endpoint.origin, { header: { [name]: ['x'] } }),
        untouched(),
      );
      expect(outcome).toMatchObject({ kind: 'unreachable', reason: 'unsendable' });
      expect(endpoint.received).toEqual([]);
    },
  );

  it('reports a value that HTTP cannot carry, and continues to deliver', async () => {
    const endpoint = await startEndpoint();
    const delivery = openDelivery({ connectionsPerOriginMax: 1 });
    for (const value of ['a\r\nb: c', 'a\0b', '漢字']) {
      const outcome = await delivery.attempt(claimOf(endpoint.origin, { header: { 'X-A': [value] } }), untouched());
      expect(outcome).toMatchObject({ kind: 'unreachable', reason: 'unsendable' });
    }
    expect(await delivery.attempt(claimOf(endpoint.origin), untouched())).toMatchObject({ status: 200 });
  });

  it('returns an outcome instead of throwing when the message cannot be signed', async () => {
    const endpoint = await startEndpoint();
    const delivery = openDelivery({
      signingKey: () => {
        throw new Error('no such project');
      },
    });
    expect(await delivery.attempt(claimOf(endpoint.origin), untouched())).toMatchObject({ reason: 'unsendable' });
    expect(delivery.stats()).toMatchObject({ inFlight: 0, connections: 0 });
  });
});

describe('the signature', () => {
  const receiver = new Receiver({ currentSigningKey: SIGNING_KEY, nextSigningKey: 'sig_other' });

  it('is accepted by the official receiver, for each attempt anew', async () => {
    const endpoint = await startEndpoint();
    const delivery = openDelivery();
    const url = `${endpoint.origin}/hook?x=1`;
    const claimed = claimOf(url, { body: Buffer.from('{"hällo":"wörld"}') });
    await delivery.attempt(claimed, untouched());
    await delivery.attempt(claimed, untouched());
    const signatures = endpoint.received.map((one) => String(one.headers['upstash-signature']));
    for (const signature of signatures) {
      expect(await receiver.verify({ signature, body: '{"hällo":"wörld"}', url })).toBe(true);
    }
    expect(new Set(signatures).size).toBe(2);
  });

  it('covers an empty and a binary body', async () => {
    const endpoint = await startEndpoint();
    const delivery = openDelivery();
    for (const body of [new Uint8Array(0), randomBytes(100_000)]) {
      await delivery.attempt(claimOf(endpoint.origin, { body }), untouched());
      const token = String(endpoint.received.at(-1)?.headers['upstash-signature']);
      const check = { token, signingKeys: [SIGNING_KEY], body, nowS: Date.now() / 1000, url: endpoint.origin };
      expect(verifySignature(check)).toMatchObject({ valid: true });
    }
  });
});

describe('the response', () => {
  it('is reported with canonical header names, several values and its body', async () => {
    const endpoint = await startEndpoint((response) => {
      response.writeHead(
        503,
        [
          ['retry-after', '7'],
          ['x-many', 'a'],
          ['X-MANY', 'b'],
          ['__proto__', 'x'],
        ].flat(),
      );
      response.end(Buffer.from([0, 255, 1]));
    });
    const outcome = await openDelivery().attempt(claimOf(endpoint.origin), untouched());
    if (outcome.kind !== 'responded') throw new Error(outcome.kind);
    expect(outcome.status).toBe(503);
    expect(outcome.header).toMatchObject({ 'Retry-After': ['7'], 'X-Many': ['a', 'b'] });
    expect(Object.getPrototypeOf(outcome.header)).toBe(null);
    expect([...outcome.body]).toEqual([0, 255, 1]);
    expect(outcome.body.buffer.byteLength).toBe(3);
  });

  it('keeps the body of a 2xx only for a callback', async () => {
    const endpoint = await startEndpoint();
    const delivery = openDelivery();
    const without = await delivery.attempt(claimOf(endpoint.origin), untouched());
    const withCallback = await delivery.attempt(claimOf(endpoint.origin, KEEPS_BODY), untouched());
    expect(
      [without, withCallback].map((outcome) =>
        outcome.kind === 'responded' ? String.fromCharCode(...outcome.body) : '',
      ),
    ).toEqual(['', 'ok']);
  });

  it.each([
    ['gzip', gzipSync],
    ['X-GZIP', gzipSync],
    ['deflate', deflateSync],
    ['deflate', deflateRawSync],
    ['zstd', zstdCompressSync],
  ] as const)('is expanded when the endpoint compresses it in spite of the request: %s', async (coding, compress) => {
    const text = '{"city":"Łódź"}'.repeat(2_000);
    const endpoint = await startEndpoint((response) =>
      response.writeHead(200, { 'content-encoding': coding }).end(compress(text)),
    );
    const delivery = openDelivery();
    const outcome = await delivery.attempt(claimOf(endpoint.origin, KEEPS_BODY), untouched());
    if (outcome.kind !== 'responded') throw new Error(outcome.kind);
    expect(Buffer.from(outcome.body).toString() === text).toBe(true);
    expect(outcome.header['Content-Encoding']).toEqual([coding]);
    expect(delivery.stats()).toMatchObject({ inFlight: 0 });
  });

  it('reuses the connection, one request at a time', async () => {
    const endpoint = await startEndpoint();
    let connections = 0;
    endpoint.server.on('connection', () => {
      connections += 1;
    });
    const delivery = openDelivery();
    for (let nth = 0; nth < 10; nth += 1) await delivery.attempt(claimOf(endpoint.origin), untouched());
    expect(connections).toBe(1);
    expect(delivery.stats()).toMatchObject({ origins: 1, connections: 1, inFlight: 0 });
  });

  it('opens no more connections to an origin than allowed, and serves all', async () => {
    let open = 0;
    let most = 0;
    const endpoint = await startEndpoint((response) => {
      open += 1;
      most = Math.max(most, open);
      setTimeout(() => {
        open -= 1;
        response.end();
      }, 5);
    });
    const delivery = openDelivery({ connectionsPerOriginMax: 3 });
    const attempts = Array.from({ length: 30 }, () => delivery.attempt(claimOf(endpoint.origin), untouched()));
    expect(delivery.stats()).toMatchObject({ connections: 3, waiting: 27, inFlight: 30 });
    const outcomes = await Promise.all(attempts);
    expect(outcomes.every((outcome) => outcome.kind === 'responded')).toBe(true);
    expect(most).toBe(3);
  });
});

function linesOf(one: Received | undefined): [string, string][] {
  const raw = one?.rawHeaders ?? [];
  return raw.flatMap((text, at) => (at % 2 === 0 ? [[text, raw[at + 1] ?? ''] as [string, string]] : []));
}
