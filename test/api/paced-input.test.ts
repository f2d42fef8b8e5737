/**
 * The order in which connections are served when they send more requests than the server has responded to, counted in turns of
 * the event loop that the test ends.
 */
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { exchange, RawConnection } from './support/raw-http.ts';
import { LIMITS, OTHER_TOKEN, openWorld, PATIENT, TOKEN, type World } from './support/world.ts';

const HEAD = `Host: waypost\r\nAuthorization: Bearer ${TOKEN}\r\n`;
const CLOSE = 'Connection: close\r\n';
const SHORT = 'GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n';
/** Requests that begin in one turn of a connection. */
const TOGETHER = 8;

let world: World;
let port: number;
/** Ends the turn of the event loop that somebody waits for. */
let turns: (() => void)[];
let onTurn: () => void;
/** Requests that the parser has handed out, by connection. */
let begun: Map<Socket, number>;
let lookedUp: Promise<undefined>;
let connections: RawConnection[];

beforeEach(async () => {
  turns = [];
  onTurn = () => {};
  begun = new Map();
  lookedUp = Promise.resolve(undefined);
  connections = [];
  const endOfTurn = (): Promise<void> =>
    new Promise((resolve) => {
      turns.push(resolve);
      onTurn();
    });
  const limits = { ...LIMITS, ...PATIENT, messageBytesMax: 10_000_000, requestMemoryBytesMax: 20_000_000 };
  // The interface's clock stands still. With the real one, a request on a slow machine needs turns for slices of work.
  const clock = new SimulatedClock();
  world = await openWorld({ limits, clock, checkDestination: () => () => lookedUp, endOfTurn });
  world.app.server.prependListener('request', ({ socket }: IncomingMessage) => {
    begun.set(socket, (begun.get(socket) ?? 0) + 1);
  });
  ({ port } = await world.listen());
});

afterEach(async () => {
  for (const connection of connections) connection.destroy();
  await Promise.all(connections.map(({ closed }) => closed));
  await world.close();
});

/** Resolves when everybody has had what they get without a turn. */
async function flood(count: number, request: string): Promise<void> {
  connections = Array.from({ length: count }, () => new RawConnection(port));
  for (const connection of connections) connection.send(request.repeat(1_000));
  await Promise.all(connections.map(waitForResponse));
}

const waitForResponse = (connection: RawConnection): Promise<string> =>
  connection.until((received) => received.includes('HTTP/1.1'));

/** Ends the turn that is waited for, and resolves at the end of the next. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    onTurn = resolve;
    turns.shift()?.();
  });
}

async function turnsUntil(end: Promise<void> | undefined): Promise<void> {
  let isOver = false;
  const over = end?.then(() => {
    isOver = true;
  });
  while (!isOver) await Promise.race([nextTurn(), over]);
}

const counts = (): number[] => [...begun.values()];

it.each([
  ['without a body', SHORT],
  ['with a body', `POST /healthz HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n[]`],
])('begins one request %s of each connection before others have had their turn', async (_, request) => {
  await flood(10, request);
  expect(counts()).toEqual(Array.from({ length: 10 }, () => 1));
});

it('hears one connection in each turn, the one that waits longest first', async () => {
  await flood(5, SHORT);
  const heard: number[] = [];
  for (let nth = 0; nth < 10; nth += 1) {
    const before = counts();
    await nextTurn();
    const more = counts().map((count, at) => count - (before[at] ?? 0));
    heard.push(...more.flatMap((count, at) => (count > 0 ? [at] : [])));
    expect(more.filter((count) => count > 0)).toHaveLength(1);
    expect(Math.max(...more)).toBeLessThanOrEqual(TOGETHER);
  }
  expect(new Set(heard.slice(0, 5)).size).toBe(5);
  expect(heard.slice(5)).toEqual(heard.slice(0, 5));
});

it('starts the requests of connections that wait for each response in the order in which they came, 32 in a turn', async () => {
  const order: Socket[] = [];
  world.app.server.prependListener('request', ({ socket }: IncomingMessage) => order.push(socket));
  const arrived: Socket[] = [];
  world.app.server.prependListener('connection', (socket) => arrived.push(socket));
  const send = async (count: number): Promise<void> => {
    const opened = Array.from({ length: count }, () => new RawConnection(port));
    connections.push(...opened);
    for (const connection of opened) connection.send(SHORT);
    const isIn = (): boolean => arrived.slice(-count).every((socket) => socket.bytesRead > 0);
    while (arrived.length < connections.length || !isIn()) await new Promise((resolve) => setImmediate(resolve));
  };
  await send(40);
  await send(40);
  expect(order).toHaveLength(32);
  await nextTurn();
  expect(order).toHaveLength(64);
  await turnsUntil(Promise.all(connections.map(waitForResponse)).then(() => {}));
  expect(order).toHaveLength(80);
  expect(new Set(order.slice(0, 40))).toEqual(new Set(arrived.slice(0, 40)));
});

it('starts a request of another project in the next turn, however many connections of one project wait', async () => {
  const queues = (token: string) => `GET /v2/queues HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${token}\r\n\r\n`;
  const open = async (count: number, token: string): Promise<RawConnection[]> => {
    const opened = Array.from({ length: count }, () => new RawConnection(port));
    connections.push(...opened);
    for (const connection of opened) connection.send(queues(token));
    await turnsUntil(Promise.all(opened.map(waitForResponse)).then(() => {}));
    return opened;
  };
  const many = await open(100, TOKEN);
  const [other] = await open(1, OTHER_TOKEN);
  const started: (string | undefined)[] = [];
  world.app.server.prependListener('request', ({ headers }: IncomingMessage) => started.push(headers.authorization));
  for (const connection of many) connection.send(queues(TOKEN));
  while (started.length < 31) await new Promise((resolve) => setImmediate(resolve));
  other?.send(queues(OTHER_TOKEN));
  for (let nth = 0; nth < 20; nth += 1) await new Promise((resolve) => setImmediate(resolve));
  expect(started).not.toContain(`Bearer ${OTHER_TOKEN}`);
  await nextTurn();
  expect(started.length).toBeLessThan(100);
  expect(started).toContain(`Bearer ${OTHER_TOKEN}`);
});

it('needs no turn for clients that wait for each response, however large their bodies are', async () => {
  await flood(5, SHORT);
  const body = 'x'.repeat(1_000_000);
  const publish = `POST /v2/publish/https://slow.example/ HTTP/1.1\r\n${HEAD}${CLOSE}Content-Length: ${body.length}\r\n\r\n${body}`;
  expect((await exchange(port, publish)).status).toBe(200);
  expect(turns).toHaveLength(1);
});

it('begins nothing that stands behind the last bytes of a body before others have had their turn', async () => {
  const uploader = new RawConnection(port);
  connections.push(uploader);
  const begin = new Promise((resolve) => world.app.server.once('request', resolve));
  uploader.send(`POST /v2/publish/https://slow.example/ HTTP/1.1\r\n${HEAD}Content-Length: 30000\r\n\r\n`);
  await begin;
  uploader.send('x'.repeat(20_000));
  await exchange(port, `GET /healthz HTTP/1.1\r\n${HEAD}${CLOSE}\r\n`);
  uploader.send(`${'x'.repeat(10_000)}${SHORT.repeat(500)}`);
  await uploader.until((received) => received.includes('HTTP/1.1'));
  expect(Math.max(...counts())).toBeLessThanOrEqual(2);
});

it('reads no more of a body than fits, as long as nobody asks for it', async () => {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  lookedUp = promise;
  const stopped = new Promise<Socket>((resolveSocket) => {
    world.app.server.once('connection', (socket) => socket.once('pause', () => resolveSocket(socket)));
  });
  const uploader = new RawConnection(port);
  connections.push(uploader);
  const body = 'x'.repeat(8_000_000);
  uploader.send(
    `POST /v2/publish/https://slow.example/ HTTP/1.1\r\n${HEAD}${CLOSE}Content-Length: ${body.length}\r\n\r\n${body}`,
  );
  const socket = await stopped;
  for (let nth = 0; nth < 20; nth += 1) await exchange(port, `GET /healthz HTTP/1.1\r\n${HEAD}${CLOSE}\r\n`);
  expect(socket.bytesRead).toBeLessThan(300_000);
  resolve(undefined);
  await turnsUntil(uploader.closed);
  expect(uploader.received).toContain('HTTP/1.1 200');
});

it('reads a head without an end in turns with others', async () => {
  const flooder = new RawConnection(port);
  connections.push(flooder);
  const paused = new Promise((resolve) => {
    world.app.server.once('connection', (socket) => socket.once('pause', resolve));
  });
  flooder.send(`GET / HTTP/1.1\r\nHost: h\r\n${`X-A: ${'b'.repeat(90)}\r\n`.repeat(2_000)}`);
  await paused;
  expect((await exchange(port, SHORT.replace('\r\n\r\n', `\r\n${CLOSE}\r\n`))).status).toBe(200);
  let turnsTaken = 0;
  let isRefused = false;
  const refused = flooder
    .until((received) => received.includes('431'))
    .then(() => {
      isRefused = true;
    });
  for (; !isRefused; turnsTaken += 1) await Promise.race([nextTurn(), refused]);
  // The limit of a head is above 64 KiB, of which a turn has 2 KiB.
  expect(turnsTaken).toBeGreaterThanOrEqual(30);
});

it('reads nothing more from a connection whose last response was sent', async () => {
  await flood(1, `POST /v2/batch HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer nope\r\nContent-Length: 2\r\n\r\n[]`);
  await turnsUntil(connections[0]?.closed);
  expect(connections[0]?.received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 401']);
  expect(counts()).toEqual([1]);
});

it('starts no more requests while sixteen of a connection have no response', async () => {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  lookedUp = promise;
  const publish = `POST /v2/publish/https://slow.example/ HTTP/1.1\r\n${HEAD}\r\n`;
  const sender = new RawConnection(port);
  connections.push(sender);
  sender.send(publish.repeat(100));
  for (let nth = 0; nth < 20; nth += 1) {
    await exchange(port, SHORT.replace('\r\n\r\n', `\r\n${CLOSE}\r\n`));
    turns.shift()?.();
  }
  const [ofSender = 0] = counts();
  expect(ofSender).toBeGreaterThanOrEqual(16);
  expect(ofSender).toBeLessThanOrEqual(16 + Math.ceil(512 / publish.length));
  resolve(undefined);
});
