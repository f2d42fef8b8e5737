/** How long connections are kept open, how many there may be, and how they end when the server closes. */
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { connect as connectTo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { listen } from '../../src/server/listen.ts';
import { CannotStart } from '../../src/system/cannot-start.ts';
import { eventually } from '../support/eventually.ts';
import { exchange, RawConnection } from './support/raw-http.ts';
import { LIMITS, openWorld, TOKEN, type World } from './support/world.ts';

const HEAD = `Host: waypost\r\nAuthorization: Bearer ${TOKEN}\r\n`;
const ALIVE = `GET /healthz HTTP/1.1\r\n${HEAD}\r\n`;

/** Another one of this machine; not everywhere is there IPv6. */
const OTHER_ADDRESS = process.platform === 'linux' ? '127.0.0.2' : '::1';
const NOT_OURS = '192.0.2.1';

let world: World;
afterEach(() => world.close());

async function connect(): Promise<RawConnection> {
  const { port } = await world.listen();
  return new RawConnection(port);
}

/** The headers of all responses, in lower case. */
function heads({ received }: RawConnection): string[] {
  return received.toLowerCase().match(/http\/1\.1 .*?\r\n\r\n/gs) ?? [];
}

/** Sends a request that is in progress until the returned function is called. */
async function beginOne(connection: RawConnection): Promise<() => void> {
  const found = Promise.withResolvers<undefined>();
  const asked = new Promise<void>((resolve) => {
    world.engine.findMessage = () => {
      resolve();
      return found.promise;
    };
  });
  connection.send(`GET /v2/messages/msg_x HTTP/1.1\r\n${HEAD}\r\n`);
  await asked;
  return () => found.resolve(undefined);
}

describe('a connection', () => {
  it('is kept for the next request, and says how long and for how many', async () => {
    world = await openWorld();
    const connection = await connect();
    connection.send(ALIVE);
    await connection.until((received) => received.includes('}'));
    expect(heads(connection)[0]).toMatch(/connection: keep-alive\r\nkeep-alive: timeout=75, max=10000\r\n/);
    connection.send(ALIVE);
    await connection.until(() => heads(connection).length === 2);
  });

  it('is dead when nothing moves on it for longer than any request may take', async () => {
    world = await openWorld({ limits: { ...LIMITS, requestTimeoutMs: 7_000 } });
    expect(world.app.server.timeout).toBe(14_000);
  });

  it('has as long for its headers as is set, be it longer than Node has for a whole request', async () => {
    world = await openWorld({ limits: { ...LIMITS, headersTimeoutMs: 600_000, requestTimeoutMs: 60_000 } });
    expect([world.app.server.headersTimeout, world.app.server.requestTimeout]).toEqual([600_000, 60_000]);
  });

  it('above the limit is closed at once', async () => {
    world = await openWorld({ limits: { ...LIMITS, connectionsMax: 1 } });
    const { port } = await world.listen();
    const first = new RawConnection(port);
    first.send(ALIVE);
    await first.until((received) => received.includes('}'));
    const second = new RawConnection(port);
    await second.closed;
    first.send(ALIVE);
    await first.until(() => heads(first).length === 2);
    expect([second.received, heads(first).length]).toEqual(['', 2]);
  });
});

describe.runIf(process.platform === 'linux')('a server with several sockets', () => {
  it('takes several of those who come at once in each turn of the event loop', async () => {
    world = await openWorld();
    const { port } = await listen(world.app, { host: '127.0.0.1', port: 0, isShared: false });
    const sockets = Array.from({ length: 64 }, () => connectTo({ host: '127.0.0.1', port }));
    let taken = 0;
    world.app.server.on('connection', () => {
      taken += 1;
    });
    // The system has connected them before the server has taken them.
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    let turns = 0;
    for (; taken < sockets.length; turns += 1) await new Promise(setImmediate);
    expect(turns).toBeLessThan(sockets.length / 2);
    for (const socket of sockets) socket.destroy();
  });

  it('counts the connections of all of them', async () => {
    world = await openWorld({ limits: { ...LIMITS, connectionsMax: 8 } });
    const { port } = await listen(world.app, { host: '127.0.0.1', port: 0, isShared: false });
    const connections = Array.from({ length: 40 }, () => new RawConnection(port));
    for (const connection of connections) connection.send(ALIVE);
    const responded = () => connections.filter(({ received }) => received.includes('}')).length;
    await eventually(
      () => `${responded()} responded`,
      () => responded() === 8,
    );
    const refused = connections.filter(({ received }) => !received.includes('}'));
    await Promise.all(refused.map(({ closed }) => closed));
    expect([responded(), refused.length]).toEqual([8, 32]);
    for (const connection of connections) connection.destroy();
  });

  it('finds that another server has its port', async () => {
    world = await openWorld();
    const { port } = await listen(world.app, { host: '127.0.0.1', port: 0, isShared: false });
    const second = await openWorld();
    await expect(listen(second.app, { host: '127.0.0.1', port, isShared: false })).rejects.toThrow(CannotStart);
    await second.close();
  });
});

it('listens on each address of localhost', async () => {
  world = await openWorld();
  const { port } = await listen(world.app, { host: 'localhost', port: 0, isShared: false });
  for (const { address } of await lookup('localhost', { all: true })) {
    const connection = new RawConnection(port, address);
    connection.send(ALIVE);
    expect(await connection.until((received) => received.includes('}'))).toContain('HTTP/1.1 200');
  }
});

describe('a server that closes', () => {
  it('closes the connections on which nobody waits for a response, and accepts no others', async () => {
    world = await openWorld();
    const { port } = await world.listen();
    const idle = new RawConnection(port);
    idle.send(ALIVE);
    await idle.until((received) => received.includes('}'));
    await world.app.close();
    await idle.closed;
    const late = new RawConnection(port);
    await late.closed;
    expect([idle.error, late.error]).toEqual([undefined, 'ECONNREFUSED']);
  });

  it('responds to requests in progress and to later ones on their connections, and then closes these', async () => {
    world = await openWorld();
    const connection = await connect();
    const respond = await beginOne(connection);
    const closed = world.app.close();
    connection.send(ALIVE);
    respond();
    await connection.closed;
    await closed;
    expect(connection.received).toMatch(/HTTP\/1\.1 404.*msg_x.*HTTP\/1\.1 200.*alive/s);
    expect(heads(connection).map((head) => head.includes('connection: close'))).toEqual([false, true]);
  });

  it('does so on every address it listens on', async () => {
    world = await openWorld();
    const { port } = await world.app.listen({ host: '127.0.0.1', port: 0 }, [OTHER_ADDRESS, NOT_OURS]);
    const connections = ['127.0.0.1', OTHER_ADDRESS].map((host) => new RawConnection(port, host));
    for (const connection of connections) {
      connection.send(`${ALIVE}garbage\r\n\r\n`);
      await connection.closed;
      expect(connection.received).toMatch(/HTTP\/1\.1 200.*alive.*HTTP\/1\.1 400.*malformed/s);
    }
    const last = new RawConnection(port, OTHER_ADDRESS);
    const respond = await beginOne(last);
    const closed = world.app.close();
    last.send(ALIVE);
    respond();
    await last.closed;
    await closed;
    expect(heads(last).map((head) => head.includes('connection: close'))).toEqual([false, true]);
    const late = new RawConnection(port, OTHER_ADDRESS);
    await late.closed;
    expect(late.error).toBe('ECONNREFUSED');
  });

  it('closes once, however often it is told to, and whether or not it has listened', async () => {
    world = await openWorld();
    await Promise.all([world.app.close(), world.app.close()]);
    await world.app.close();
    const other = await openWorld();
    const { port } = await other.listen();
    await Promise.all([other.app.close(), other.app.close()]);
    expect((await exchange(port, ALIVE)).status).toBe(0);
    await other.close();
  });
});
