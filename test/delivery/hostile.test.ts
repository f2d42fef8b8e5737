/** Hostile endpoints: each attempt ends in time, with the right kind of outcome. */
import { randomBytes } from 'node:crypto';
import https from 'node:https';
import type net from 'node:net';
import tls from 'node:tls';
import { gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Resolver } from '../../src/delivery/addresses/resolver.ts';
import type { AttemptInFlight } from '../../src/engine/ports.ts';
import { freePort } from '../support/free-port.ts';
import { listen } from '../support/listen.ts';
import {
  claimOf,
  KEEPS_BODY,
  onEachHead,
  openDelivery,
  reasonOf,
  SELF_SIGNED,
  startEndpoint,
  startTcp,
  untouched,
} from './support.ts';

const TIMEOUT_MS = 150;
const HEAD = 'HTTP/1.1 200 OK\r\n';
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';

type Behaviour = (socket: net.Socket) => void;

function every(ms: number, socket: net.Socket, task: () => void): void {
  const interval = setInterval(task, ms);
  socket.on('close', () => clearInterval(interval));
}

function flood(socket: net.Socket, piece: string | Buffer, first: string | Buffer = piece): void {
  socket.write(first);
  const write = (): void => {
    while (!socket.destroyed && socket.write(piece));
  };
  socket.on('drain', write);
  write();
}

const MATRIX: [string, Behaviour, string][] = [
  ['accepts and says nothing', () => {}, 'timeout'],
  ['stops in the middle of the head', (socket) => socket.write('HTTP/1.1 200 OK\r\nX-'), 'timeout'],
  [
    'drips its head byte by byte',
    (socket) => {
      socket.write(`${HEAD}X-Drip: `);
      every(20, socket, () => socket.write('a'));
    },
    'timeout',
  ],
  [
    'drips its body byte by byte',
    (socket) => {
      socket.write(`${HEAD}Content-Length: 1000\r\n\r\n`);
      every(20, socket, () => socket.write('a'));
    },
    'timeout',
  ],
  ['stops in the middle of its body', (socket) => socket.write(`${HEAD}Content-Length: 9\r\n\r\nabc`), 'timeout'],
  ['sends an endless body', (socket) => flood(socket, Buffer.alloc(65_536), `${HEAD}\r\n`), 'responded'],
  [
    'announces 100 MB and sends them',
    (socket) => flood(socket, Buffer.alloc(65_536), `${HEAD}Content-Length: 104857600\r\n\r\n`),
    'responded',
  ],
  [
    'sends endless chunks of one byte',
    (socket) => flood(socket, '1\r\na\r\n'.repeat(1_000), `${HEAD}Transfer-Encoding: chunked\r\n\r\n`),
    'responded',
  ],
  ['sends 10,000 headers', (socket) => flood(socket, 'X-A: b\r\n'.repeat(10_000), HEAD), 'malformed'],
  ['sends one endless header', (socket) => flood(socket, 'a'.repeat(10_000), `${HEAD}X-A: `), 'malformed'],
  [
    'floods with interim responses',
    (socket) => flood(socket, 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(100)),
    'malformed',
  ],
  ['closes without a word', (socket) => socket.end(), 'reset'],
  ['resets without a word', (socket) => socket.resetAndDestroy(), 'reset'],
  [
    'resets in the middle of its body',
    (socket) =>
      socket.write(`${HEAD}Content-Length: 100\r\n\r\nabc`, () => setTimeout(() => socket.resetAndDestroy(), 20)),
    'reset',
  ],
  ['closes in the middle of its head', (socket) => socket.end('HTTP/1.1 200 OK\r\nX-A'), 'malformed'],
  [
    'closes in the middle of its chunks',
    (socket) => socket.end(`${HEAD}Transfer-Encoding: chunked\r\n\r\n5\r\nab`),
    'reset',
  ],
  [
    'sends less than it announced',
    (socket) => socket.end(`${HEAD}Connection: close\r\nContent-Length: 9\r\n\r\nabc`),
    'malformed',
  ],
  [
    'announces its length twice',
    (socket) => socket.end(`${HEAD}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`),
    'malformed',
  ],
  ['announces a senseless length', (socket) => socket.end(`${HEAD}Content-Length: many\r\n\r\nab`), 'malformed'],
  ['sends senseless chunks', (socket) => socket.end(`${HEAD}Transfer-Encoding: chunked\r\n\r\nzz\r\nab`), 'malformed'],
  ['speaks HTTP/0.9', (socket) => socket.end('<html>hello</html>'), 'malformed'],
  ['speaks something else', (socket) => socket.end('SSH-2.0-OpenSSH_9.9\r\n'), 'malformed'],
  ['speaks TLS where HTTP was asked for', (socket) => socket.end(Buffer.from([0x15, 3, 1, 0, 2, 2, 70])), 'malformed'],
  [
    'switches protocols unasked',
    (socket) => socket.end('HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'),
    'malformed',
  ],
  [
    'sends a body with 204',
    (socket) => socket.end('HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\nabc'),
    'responded',
  ],
  ['sends more than it announced', (socket) => socket.end(`${HEAD}Content-Length: 2\r\n\r\nabc`), 'responded'],
  [
    'sends an unsolicited 100 Continue',
    (socket) => socket.end(`${CONTINUE}${HEAD}Content-Length: 0\r\n\r\n`),
    'responded',
  ],
  [
    'says 100 Continue in pieces, again and again',
    (socket) => {
      socket.write(CONTINUE.slice(0, 15));
      setTimeout(() => socket.write(CONTINUE.slice(15) + CONTINUE + CONTINUE.slice(0, -1)), 20);
      setTimeout(() => socket.end(`\n${HEAD}Content-Length: 0\r\n\r\n`), 40);
    },
    'responded',
  ],
  ['floods with 100 Continue', (socket) => flood(socket, CONTINUE.repeat(100)), 'malformed'],
  ['begins a 100 Continue that never ends', (socket) => flood(socket, 'HTTP/1.1 100 Continue\r\nX: y'), 'malformed'],
  [
    'sends early hints first',
    (socket) => socket.end(`HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n${HEAD}Content-Length: 0\r\n\r\n`),
    'responded',
  ],
  [
    'responds before it has read the request',
    (socket) => socket.end(`${HEAD}Connection: close\r\n\r\ndone`),
    'responded',
  ],
];

describe('an endpoint that', () => {
  it.each(MATRIX)('%s', async (_name, behaviour, expected) => {
    const endpoint = await startTcp((socket) => socket.once('data', () => behaviour(socket)));
    // Only those who are to be waited for are given little time: floods take ours, and machines differ.
    const delivery = openDelivery({ timeoutMsMax: expected === 'timeout' ? TIMEOUT_MS : 60_000 });
    const outcome = await delivery.attempt(claimOf(endpoint.origin, KEEPS_BODY), untouched());
    expect(reasonOf(outcome)).toBe(expected);
    expect(endpoint.state.connections).toBe(1);
    if (outcome.kind === 'responded') expect(outcome.body.length).toBeLessThanOrEqual(64 * 1024);
    if (outcome.kind === 'unreachable') expect(outcome.error).not.toContain('127.0.0.1');
    expect(delivery.stats()).toMatchObject({ inFlight: 0, waiting: 0 });
  });

  it('sends a body beyond the limit: it is truncated, and the socket is closed', async () => {
    const endpoint = await startTcp((socket) => {
      socket.once('data', () => {
        socket.write(`HTTP/1.1 500 Oops\r\n\r\n`);
        flood(socket, Buffer.alloc(1_000, 'x'));
      });
    });
    const delivery = openDelivery({ responseBytesMax: 5_000 });
    const outcome = await delivery.attempt(claimOf(endpoint.origin), untouched());
    const body = new Uint8Array(5_000).fill(120);
    expect(outcome).toMatchObject({ kind: 'responded', status: 500, body, isCut: true });
    expect(delivery.stats()).toMatchObject({ connections: 0, origins: 0 });
    await expect.poll(() => endpoint.sockets.size).toBe(0);
  });

  it.each([
    ['a step, whose failure is told', 'step', 500, 40_000],
    ['a call, whose response is a result', 'toCallback', 500, 20_000],
    ['a failure callback', 'failureCall', 500, 20_000],
    ['a step, with success', 'step', 200, 20_000],
    ['a message of no run', undefined, 500, 10_000],
  ] as const)('sends a long response is read up to the limit of its kind: %s', async (_, callType, status, bytes) => {
    const endpoint = await startEndpoint((response) => {
      response.writeHead(status);
      response.end(Buffer.alloc(50_000, 'x'));
    });
    const limits = { responseBytesMax: 10_000, runResponseBytesMax: 20_000, runFailureBytesMax: 40_000 };
    const run = callType && { key: 1, id: 'r', createdAtMs: 0, url: endpoint.origin, callType, features: [] };
    const { settings } = KEEPS_BODY;
    const claimed = claimOf(endpoint.origin, { settings: run ? { ...settings, run } : settings });
    const outcome = await openDelivery(limits).attempt(claimed, untouched());
    if (outcome.kind !== 'responded') throw new Error(outcome.kind);
    expect([outcome.body.length, outcome.isCut]).toEqual([bytes, true]);
  });

  it.each([
    ['the limit of a response', { responseBytesMax: 50_000 }],
    ['the memory of all responses', { responseBytesMax: 50_000_000, responseMemoryBytesMax: 3_000_000 }],
  ])('sends a compressed bomb has failed, once its body is expanded beyond %s', async (_, limits) => {
    const bomb = gzipSync(Buffer.alloc(10 * 1024 * 1024));
    const endpoint = await startEndpoint((response) =>
      response.writeHead(500, { 'content-encoding': 'gzip' }).end(bomb),
    );
    const outcome = await openDelivery(limits).attempt(claimOf(endpoint.origin), untouched());
    expect(outcome).toEqual({
      kind: 'unreachable',
      reason: 'malformed',
      error: expect.stringContaining('its compressed body expands to more than'),
    });
  });

  it('compresses a long text: it is truncated at the limit like a plain one', async () => {
    const text = randomBytes(40_000).toString('hex');
    const endpoint = await startEndpoint((response) =>
      response.writeHead(500, { 'content-encoding': 'gzip' }).end(gzipSync(text)),
    );
    const delivery = openDelivery({ responseBytesMax: 50_000 });
    const outcome = await delivery.attempt(claimOf(endpoint.origin), untouched());
    expect(outcome).toMatchObject({ kind: 'responded', isCut: true, header: { 'Content-Encoding': ['gzip'] } });
    expect(outcome.kind === 'responded' && Buffer.from(outcome.body).toString() === text.slice(0, 50_000)).toBe(true);
  });

  it.each([
    ['what is no gzip', { 'content-encoding': 'gzip' }],
    ['a coding that nobody knows', { 'content-encoding': 'lzma' }],
    ['several codings', { 'content-encoding': 'gzip, br' }],
  ])('announces %s has its bytes kept as they came', async (_, headers) => {
    const endpoint = await startEndpoint((response) => response.writeHead(500, headers).end('plain text'));
    const outcome = await openDelivery().attempt(claimOf(endpoint.origin), untouched());
    if (outcome.kind !== 'responded') throw new Error(outcome.kind);
    expect(Buffer.from(outcome.body).toString()).toBe('plain text');
  });

  it('is not there is refused', async () => {
    const port = await freePort();
    const outcome = await openDelivery().attempt(claimOf(`http://127.0.0.1:${port}`), untouched());
    expect(outcome).toEqual({ kind: 'unreachable', reason: 'refused', error: 'connection refused' });
  });

  it('has no name in the world cannot be resolved', async () => {
    const resolver = new Resolver(async () => {
      throw Object.assign(new Error('getaddrinfo ENOTFOUND'), { code: 'ENOTFOUND' });
    });
    const outcome = await openDelivery({ resolver }).attempt(claimOf('http://nobody.example:81/'), untouched());
    expect(outcome).toEqual({
      kind: 'unreachable',
      reason: 'dns',
      error: 'unable to resolve host: nobody.example (no such host)',
    });
  });

  it('has a name for which no DNS server responds times out', async () => {
    const delivery = openDelivery({ resolver: new Resolver(() => new Promise(() => {})), timeoutMsMax: 50 });
    const outcome = await delivery.attempt(claimOf('http://slow.example/'), untouched());
    expect(outcome).toMatchObject({ reason: 'timeout', error: 'timeout: no complete response within 50 ms' });
    expect(delivery.stats()).toMatchObject({ connections: 0, inFlight: 0 });
  });
});

describe('a TLS endpoint', () => {
  const resolver = new Resolver(async () => [{ address: '127.0.0.1', family: 4 }]);

  it('with a self-signed certificate is refused, unless verification is off', async () => {
    const server = https.createServer(SELF_SIGNED, (_request, response) => response.end('ok'));
    const { port } = new URL(await listen(server));
    onTestFinished(() => server.closeAllConnections());
    onTestFinished(() => void server.close());
    const claimed = claimOf(`https://localhost:${port}`);
    const outcome = await openDelivery({ resolver }).attempt(claimed, untouched());
    expect(outcome).toEqual({
      kind: 'unreachable',
      reason: 'tls',
      error: 'TLS handshake failed (DEPTH_ZERO_SELF_SIGNED_CERT)',
    });
    const trusting = openDelivery({ resolver, verifyTls: false });
    for (let nth = 0; nth < 3; nth += 1) {
      expect(await trusting.attempt(claimed, untouched())).toMatchObject({ kind: 'responded', status: 200 });
    }
    expect(trusting.stats()).toMatchObject({ connections: 1 });
  });

  it('receives the host name of the URL', async () => {
    const names: (string | false)[] = [];
    const server = tls.createServer(SELF_SIGNED, (socket) => {
      names.push((socket as unknown as { servername: string | false }).servername);
      socket.on('error', () => {});
      socket.end('HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n');
    });
    const { port } = new URL(await listen(server));
    onTestFinished(() => void server.close());
    const delivery = openDelivery({ resolver, verifyTls: false });
    await delivery.attempt(claimOf(`https://hook.example:${port}`), untouched());
    expect(names).toEqual(['hook.example']);
  });

  it('that speaks plain HTTP fails as TLS', async () => {
    const endpoint = await startTcp((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n'));
    const outcome = await openDelivery({ resolver }).attempt(
      claimOf(`https://localhost:${endpoint.port}`),
      untouched(),
    );
    expect(reasonOf(outcome)).toBe('tls');
  });

  it('that never finishes its handshake times out, and its socket is closed', async () => {
    const endpoint = await startTcp((socket) => socket.resume());
    const delivery = openDelivery({ resolver, timeoutMsMax: 100 });
    const outcome = await delivery.attempt(claimOf(`https://localhost:${endpoint.port}`), untouched());
    expect(reasonOf(outcome)).toBe('timeout');
    await expect.poll(() => endpoint.sockets.size).toBe(0);
  });
});

describe('a connection that was kept alive', () => {
  const OK = `${HEAD}Content-Length: 2\r\n\r\nok`;

  it('and is closed while we write: the request is repeated at once, uncounted', async () => {
    const endpoint = await startTcp((socket, nth) => {
      onEachHead(socket, (request) => {
        if (nth === 1 && request === 2) socket.resetAndDestroy();
        else socket.write(OK);
      });
    });
    const delivery = openDelivery();
    const claimed = claimOf(endpoint.origin);
    expect(reasonOf(await delivery.attempt(claimed, untouched()))).toBe('responded');
    expect(reasonOf(await delivery.attempt(claimed, untouched()))).toBe('responded');
    expect(delivery.stats()).toMatchObject({ resent: 1, connections: 1, inFlight: 0 });
    expect(endpoint.state.connections).toBe(2);
  });

  it('and is closed again: the request is not sent a third time', async () => {
    let requests = 0;
    const endpoint = await startTcp((socket) => {
      onEachHead(socket, () => {
        requests += 1;
        if (requests === 1) socket.write(OK);
        else socket.end();
      });
    });
    const delivery = openDelivery();
    await delivery.attempt(claimOf(endpoint.origin), untouched());
    expect(reasonOf(await delivery.attempt(claimOf(endpoint.origin), untouched()))).toBe('reset');
    expect(requests).toBe(3);
    expect(delivery.stats()).toMatchObject({ resent: 1, connections: 0 });
  });

  it('and is closed after a part of the response: the attempt has failed, nothing is sent twice', async () => {
    let requests = 0;
    const endpoint = await startTcp((socket) => {
      onEachHead(socket, () => {
        requests += 1;
        if (requests === 1) socket.write(OK);
        else socket.end('HTTP/1.1 200');
      });
    });
    const delivery = openDelivery();
    await delivery.attempt(claimOf(endpoint.origin), untouched());
    expect(reasonOf(await delivery.attempt(claimOf(endpoint.origin), untouched()))).toBe('malformed');
    expect(requests).toBe(2);
  });

  it('and is closed during a call that has saved a checkpoint: the attempt has failed, nothing is sent twice', async () => {
    let requests = 0;
    let underWay: AttemptInFlight | undefined;
    const endpoint = await startTcp((socket) => {
      onEachHead(socket, () => {
        requests += 1;
        if (requests === 1) return void socket.write(OK);
        underWay?.extend(); // as a checkpoint does
        socket.end();
      });
    });
    const delivery = openDelivery();
    await delivery.attempt(claimOf(endpoint.origin), untouched());
    const outcome = await delivery.attempt(claimOf(endpoint.origin), untouched(), (attempt) => {
      underWay = attempt;
    });
    expect(reasonOf(outcome)).toBe('reset');
    expect(requests).toBe(2);
  });

  it('costs no attempt when the server closes idle connections', async () => {
    const endpoint = await startEndpoint();
    endpoint.server.keepAliveTimeout = 5;
    endpoint.server.keepAliveTimeoutBuffer = 0;
    const delivery = openDelivery({ connectionsPerOriginMax: 4, timeoutMsMax: 60_000 });
    const outcomes = [];
    for (let nth = 0; nth < 60; nth += 1) {
      outcomes.push(await delivery.attempt(claimOf(endpoint.origin), untouched()));
      // biome-ignore lint/plugin: not waiting for anything; sends at every phase of the server's idle timeout
      await new Promise((resolve) => setTimeout(resolve, 3 + (nth % 5)));
    }
    expect(outcomes.filter((outcome) => outcome.kind !== 'responded')).toEqual([]);
  });
});

it('leaves a body that looks like an interim response unchanged', async () => {
  const body = `${CONTINUE}${HEAD}\r\n`;
  const endpoint = await startTcp((socket) => {
    onEachHead(socket, () => {
      socket.write(`HTTP/1.1 500 Oops\r\nContent-Length: ${body.length}\r\n\r\n`);
      setTimeout(() => socket.write(body), 20);
    });
  });
  const delivery = openDelivery();
  for (let nth = 0; nth < 2; nth += 1) {
    const outcome = await delivery.attempt(claimOf(endpoint.origin), untouched());
    expect(outcome).toMatchObject({ kind: 'responded', status: 500, body: new Uint8Array(Buffer.from(body)) });
  }
});

describe('an endpoint that uses all its connections', () => {
  it('does not delay other endpoints', async () => {
    const silent = await startTcp();
    const healthy = await startEndpoint();
    const delivery = openDelivery({ connectionsPerOriginMax: 4, timeoutMsMax: 60_000 });
    const leave = new AbortController();
    let ended = 0;
    const stuck = Array.from({ length: 20 }, async () => {
      const outcome = await delivery.attempt(claimOf(silent.origin), leave.signal);
      ended += 1;
      return outcome;
    });
    for (let nth = 0; nth < 50; nth += 1) {
      expect(await delivery.attempt(claimOf(healthy.origin), untouched())).toMatchObject({ status: 200 });
    }
    expect(ended).toBe(0);
    leave.abort();
    expect((await Promise.all(stuck)).map(({ kind }) => kind)).toEqual(stuck.map(() => 'interrupted'));
    expect(delivery.stats()).toMatchObject({ inFlight: 0, waiting: 0 });
  });

  it('makes all its attempts time out, including those that wait for a connection', async () => {
    const silent = await startTcp();
    const delivery = openDelivery({ connectionsPerOriginMax: 4, timeoutMsMax: TIMEOUT_MS });
    const stuck = Array.from({ length: 20 }, () => delivery.attempt(claimOf(silent.origin), untouched()));
    expect((await Promise.all(stuck)).map(reasonOf)).toEqual(stuck.map(() => 'timeout'));
    expect(delivery.stats()).toMatchObject({ inFlight: 0, waiting: 0 });
  });
});
