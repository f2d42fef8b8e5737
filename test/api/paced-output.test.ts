/**
 * Limits how much of large responses is written and kept in memory at a time, counted in turns of the event loop that the test
 * ends.
 */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { Connection } from '../../src/api/edge/connections.ts';
import { Pacer } from '../../src/api/edge/paced-input.ts';
import { prepareContent } from '../../src/api/pages/prepared-content.ts';
import { respond } from '../../src/api/respond.ts';
import { originOf } from '../support/listen.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { RawConnection } from './support/raw-http.ts';
import { LIMITS, openWorld, PATIENT, TOKEN, type World } from './support/world.ts';

const PIECE_BYTES = 64 * 1024;
/** Upper bound of the headers of a response. */
const HEAD_BYTES = 1024;
/** Requests of a connection that may have no response yet, including those of the last bytes that the parser was given. */
const UNDER_WAY_MAX = 16 + 8;
const CONNECTIONS = 3;
const REQUESTS = UNDER_WAY_MAX + 4;

/** One target of each kind of response: prepared bytes, a file, a text that is written anew for each request. */
const TARGETS = ['/openapi.json', '/console/large.txt', '/v2/logs?count=1000'];

let world: World;
let port: number;
let turns: (() => void)[];
let isSimulated: boolean;
let sockets: Socket[];
let responses: ServerResponse[];
let connections: RawConnection[];

beforeEach(async () => {
  [turns, sockets, responses, connections, isSimulated] = [[], [], [], [], false];
  const large = await prepareContent('text/html; charset=utf-8', Buffer.alloc(400_000, 'large '));
  const limits = { ...LIMITS, ...PATIENT, batchItemsMax: 300 };
  const console = { version: '1.2.3', readFiles: async () => new Map([['large.txt', large]]) };
  const endOfTurn = (): Promise<void> =>
    new Promise((resolve) => (isSimulated ? turns.push(resolve) : setImmediate(resolve)));
  // The clock of the API does not advance, so turns are used for responses only, and none for slices of work.
  const clock = new SimulatedClock();
  world = await openWorld({ limits, clock, console, endOfTurn });
  world.app.server.on('connection', (socket) => sockets.push(socket));
  world.app.server.on('request', (_request, response) => responses.push(response));
  ({ port } = await world.listen());
  const message = {
    destination: 'https://slow.example/',
    headers: { 'Upstash-Delay': '1h', 'Upstash-Label': 'x'.repeat(100) },
  };
  const items = Array.from({ length: 300 }, () => message);
  expect((await world.ask({ method: 'POST', url: '/v2/batch', body: JSON.stringify(items) })).status).toBe(200);
  for (const url of TARGETS) expect((await world.ask({ method: 'GET', url })).text.length).toBeGreaterThan(PIECE_BYTES);
});

afterEach(async () => {
  isSimulated = false;
  for (const end of turns) end();
  for (const connection of connections) connection.destroy();
  await Promise.all(connections.map(({ closed }) => closed));
  await world.close();
});

/** Clients that send all their requests at once and read nothing. */
async function flood(target: string): Promise<void> {
  [sockets, responses, isSimulated] = [[], [], true];
  connections = Array.from({ length: CONNECTIONS }, () => new RawConnection(port));
  const request = `GET ${target} HTTP/1.1\r\nHost: waypost\r\nAuthorization: Bearer ${TOKEN}\r\n`;
  for (const connection of connections) {
    connection.socket.pause();
    await once(connection.socket, 'connect');
    connection.send(`${`${request}\r\n`.repeat(REQUESTS - 1)}${request}Connection: close\r\n\r\n`);
  }
}

/** Ends turns until `isEnough`. `looked` is called after each. */
async function turnUntil(isEnough: () => boolean, looked: () => void = () => {}): Promise<void> {
  while (!isEnough()) {
    turns.shift()?.();
    await new Promise(setImmediate);
    looked();
  }
}

const written = (): number => sockets.reduce((sum, { bytesWritten }) => sum + bytesWritten, 0);
const openResponses = (): ServerResponse[] => responses.filter(({ closed }) => !closed);
const isStuck = (): boolean =>
  sockets.length === CONNECTIONS && turns.length === 0 && sockets.every(({ writableLength }) => writableLength > 0);

it.each(TARGETS)('writes one chunk of all responses from %s in each turn', async (target) => {
  await flood(target);
  let before = 0;
  let most = 0;
  const look = (): void => {
    const after = written();
    most = Math.max(most, after - before);
    before = after;
  };
  await turnUntil(isStuck, look);
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThanOrEqual(2 * (PIECE_BYTES + HEAD_BYTES));
});

it.each(TARGETS)(
  'keeps one chunk of each response that nobody reads, and reads no more requests for %s',
  async (target) => {
    await flood(target);
    let most = 0;
    await turnUntil(isStuck, () => {
      most = Math.max(most, ...openResponses().map(({ writableLength }) => writableLength));
    });
    expect(most).toBeLessThanOrEqual(2 * PIECE_BYTES + HEAD_BYTES);
    expect(openResponses().length).toBeLessThanOrEqual(CONNECTIONS * UNDER_WAY_MAX);
    expect(responses.length).toBeLessThan(CONNECTIONS * REQUESTS);
    expect(sockets.every((socket) => socket.isPaused())).toBe(true);
  },
);

it.each(TARGETS)('sends complete responses from %s to a client that reads late', async (target) => {
  const { text } = await world.ask({ method: 'GET', url: target });
  await flood(target);
  await turnUntil(isStuck);
  for (const { socket } of connections) socket.resume();
  await turnUntil(() => connections.every(({ socket }) => socket.closed));
  const bytes = Buffer.byteLength(text);
  for (const { received } of connections) {
    const bodies = received.split(/HTTP\/1\.1 200 .*?\r\n\r\n/s).slice(1);
    expect(bodies).toHaveLength(REQUESTS);
    for (const body of bodies) expect(body.length).toBe(bytes);
    if (!target.startsWith('/v2/logs')) expect(Buffer.from(bodies.at(-1) ?? '', 'latin1').toString()).toBe(text);
  }
});

it('never cuts a character in two', async () => {
  const text = `a${'😀'.repeat(PIECE_BYTES)}`;
  const server = createServer((request, response) => {
    const connection = new Connection(request.socket, new Pacer(() => new Promise(setImmediate)));
    respond({ request, response, connection }, { status: 200, json: text }, new SimulatedClock());
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const response = await fetch(`${originOf(server)}/`);
  expect(await response.text()).toBe(text);
  server.closeAllConnections();
  server.close();
});
