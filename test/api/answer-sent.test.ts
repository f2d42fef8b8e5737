/** When is an answer said to be out of memory? */
import { once } from 'node:events';
import { createServer, get, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { Connection } from '../../src/api/connections.ts';
import { respond } from '../../src/api/respond.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';

let server: Server | undefined;
afterEach(() => server?.close());

/** A server that answers with `bytes` bytes once `begin` resolves; `sent` resolves when they are out of memory. */
async function serving(bytes: number, begin: (response: ServerResponse) => Promise<unknown>) {
  const { promise: sent, resolve } = Promise.withResolvers<void>();
  server = createServer(async (request, response) => {
    await begin(response);
    const connection = new Connection(request.socket);
    respond(
      { request, response, connection },
      { status: 200, json: 'x'.repeat(bytes), sent: resolve },
      new SimulatedClock(),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/`, sent };
}

/** Whether `promise` has resolved by the time the event loop has nothing else to do for a moment. */
function isOver(promise: Promise<void>): Promise<boolean> {
  const notYet = new Promise<boolean>((resolve) => setImmediate(() => setImmediate(() => resolve(false))));
  return Promise.race([promise.then(() => true), notYet]);
}

it('when its caller has it, and not while it is slow to read', async () => {
  const { url, sent } = await serving(32 * 1024 * 1024, async () => {});
  const [answer] = (await once(get(url), 'response')) as [IncomingMessage];
  expect(await isOver(sent)).toBe(false);
  for await (const _piece of answer);
  await sent;
});

it('when its caller goes away in the midst of it', async () => {
  const { url, sent } = await serving(32 * 1024 * 1024, async () => {});
  const [answer] = (await once(get(url), 'response')) as [IncomingMessage];
  answer.destroy();
  await sent;
});

it('at once when its caller had gone before', async () => {
  const { url, sent } = await serving(10, (response) => once(response, 'close'));
  const request = get(url).on('error', () => {});
  server?.once('request', () => request.destroy());
  await sent;
});
