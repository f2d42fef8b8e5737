/** When `onSent` is called, and when the connection of a slow client is closed. */
import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { Connection } from '../../src/api/edge/connections.ts';
import { Pacer } from '../../src/api/edge/paced-input.ts';
import { respond } from '../../src/api/respond.ts';
import { endOfTurn } from '../../src/system/system.ts';
import { listen, originOf, portOf } from '../support/listen.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';

const PACER = new Pacer(endOfTurn);

let server: Server | undefined;
afterEach(() => server?.close());

/** A server that responds with `bytes` bytes once `begin` resolves; `sent` resolves when the response is no longer in memory. */
async function serving(
  bytes: number,
  begin: (response: ServerResponse) => Promise<unknown>,
  cutOff = new AbortController().signal,
) {
  const { promise: sent, resolve } = Promise.withResolvers<void>();
  server = createServer(async (request, response) => {
    await begin(response);
    const connection = new Connection(request.socket, PACER);
    respond(
      { request, response, connection },
      { status: 200, json: 'x'.repeat(bytes), onSent: resolve, cutOff },
      new SimulatedClock(),
    );
  });
  await listen(server);
  return { url: `${originOf(server)}/`, sent };
}

/** Whether `promise` has resolved by the time the event loop has nothing else to do for a moment. */
function isOver(promise: Promise<void>): Promise<boolean> {
  const notYet = new Promise<boolean>((resolve) => setImmediate(() => setImmediate(() => resolve(false))));
  return Promise.race([promise.then(() => true), notYet]);
}

it('when the client has read it, and not while the client is slow', async () => {
  const { url, sent } = await serving(32 * 1024 * 1024, async () => {});
  const [incoming] = (await once(get(url), 'response')) as [IncomingMessage];
  expect(await isOver(sent)).toBe(false);
  for await (const _piece of incoming);
  await sent;
});

it('when the client disconnects in the middle of it', async () => {
  const { url, sent } = await serving(32 * 1024 * 1024, async () => {});
  const [incoming] = (await once(get(url), 'response')) as [IncomingMessage];
  incoming.destroy();
  await sent;
});

it('at once if the client had already disconnected', async () => {
  const { url, sent } = await serving(10, (response) => once(response, 'close'));
  const request = get(url).on('error', () => {});
  server?.once('request', () => request.destroy());
  await sent;
});

it('when the client is cut off for reading too slowly', async () => {
  const cutOff = new AbortController();
  const { url, sent } = await serving(32 * 1024 * 1024, async () => {}, cutOff.signal);
  const [incoming] = (await once(get(url), 'response')) as [IncomingMessage];
  const failed = once(incoming, 'error');
  cutOff.abort();
  await sent;
  incoming.resume();
  expect((await failed)[0]).toMatchObject({ code: 'ECONNRESET' });
});

it('when the client is cut off before the response is built', async () => {
  const { url, sent } = await serving(32 * 1024 * 1024, async () => {}, AbortSignal.abort());
  get(url)
    .on('response', (incoming) => incoming.on('error', () => {}))
    .on('error', () => {});
  await sent;
});

it('when the client is cut off while the response waits behind another one', async () => {
  const cutOff = new AbortController();
  const { promise: sent, resolve } = Promise.withResolvers<void>();
  const { promise: isClosed, resolve: tell } = Promise.withResolvers<boolean>();
  const json = 'x'.repeat(32 * 1024 * 1024);
  server = createServer((request, response) => {
    const isSecond = request.url === '/second';
    const given = { status: 200, json, ...(isSecond && { onSent: resolve, cutOff: cutOff.signal }) };
    respond({ request, response, connection: new Connection(request.socket, PACER) }, given, new SimulatedClock());
    if (!isSecond) return;
    cutOff.abort();
    tell(request.socket.destroyed);
  });
  await listen(server);
  const client = connect(portOf(server), '127.0.0.1').on('error', () => {});
  client.write('GET /first HTTP/1.1\r\nHost: h\r\n\r\nGET /second HTTP/1.1\r\nHost: h\r\n\r\n');
  expect(await isClosed).toBe(true);
  await sent;
});
