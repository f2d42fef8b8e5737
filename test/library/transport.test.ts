/** How the workflow library sends requests: with its own client on Node, with `fetch` elsewhere. */
import { createServer, type Server as HttpServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { afterEach, describe, expect, it } from 'vitest';
import { Server } from '../../packages/workflow/src/server.ts';
import { nodeTransport, sendByFetch, type Transport, transport } from '../../packages/workflow/src/transport.ts';
import { SELF_SIGNED } from '../delivery/support.ts';
import { listen as listenAnywhere } from '../support/listen.ts';

const byNode: Transport = nodeTransport() ?? sendByFetch;

interface Listening {
  server: HttpServer;
  url: string;
  port: number;
  connections: Set<Socket>;
  /** All that were ever opened. */
  opened: () => number;
}

const servers = new Set<HttpServer>();
afterEach(() => {
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  servers.clear();
});

async function listen(listener: RequestListener, port = 0): Promise<Listening> {
  const server = createServer(listener);
  servers.add(server);
  const connections = new Set<Socket>();
  let opened = 0;
  server.on('connection', (socket) => {
    opened += 1;
    connections.add(socket);
    socket.on('close', () => connections.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const address = server.address() as AddressInfo;
  return { server, url: `http://127.0.0.1:${address.port}`, port: address.port, connections, opened: () => opened };
}

/** Ends the server and all of its connections, as a crash does. */
async function crash({ server, connections }: Listening): Promise<void> {
  for (const socket of connections) socket.resetAndDestroy();
  await new Promise((resolve) => server.close(resolve));
}

const echo: RequestListener = async (request, response) => {
  const body = await text(request);
  response.writeHead(201).end(`${request.method} ${request.url} ${request.headers.authorization} ${body}`);
};

it('is that of Node here', () => {
  expect(transport).not.toBe(sendByFetch);
});

describe.each([
  ['fetch', sendByFetch],
  ['Node', byNode],
])('by %s', (_, send) => {
  it('brings what is sent, and the answer', async () => {
    const { url } = await listen(echo);
    const headers = { authorization: 'Bearer t' };
    for (const [method, body] of [['POST', 'é 🦦'], ['GET'], ['DELETE'], ['POST', '']] as const) {
      const outgoing = { method, url: `${url}/a?b=c`, headers, ...(body !== undefined && { body }) };
      expect(await send(outgoing)).toEqual({ status: 201, text: `${method} /a?b=c Bearer t ${body ?? ''}` });
    }
  });

  it('puts together characters that come in two pieces', async () => {
    const otter = Buffer.from('🦦');
    const { url } = await listen((_request, response) => {
      response.write(otter.subarray(0, 2), () => response.end(otter.subarray(2)));
    });
    expect(await send({ method: 'GET', url, headers: {} })).toEqual({ status: 200, text: '🦦' });
  });

  it('sends many at once', async () => {
    const { url } = await listen(echo);
    const bodies = Array.from({ length: 100 }, (__, index) => String(index));
    const answers = await Promise.all(bodies.map((body) => send({ method: 'POST', url, headers: {}, body })));
    expect(answers.map((answer) => answer.text.split(' ').at(-1))).toEqual(bodies);
  });

  it.each<[string, RequestListener]>([
    ['a connection that breaks', (request) => request.socket.destroy()],
    [
      'an answer that is cut off',
      (_request, response) => response.writeHead(200, { 'content-length': 10 }).write('half', () => response.destroy()),
    ],
    ['an answer that is no HTTP', (request) => request.socket.end('nonsense\r\n\r\n')],
  ])('rejects for %s', async (__, listener) => {
    const { url } = await listen(listener);
    await expect(send({ method: 'POST', url, headers: {}, body: 'x' })).rejects.toThrow();
  });

  it('rejects when nobody listens', async () => {
    const gone = await listen(echo);
    await crash(gone);
    await expect(send({ method: 'GET', url: gone.url, headers: {} })).rejects.toThrow();
  });

  it('does not trust an unknown certificate', async () => {
    const { url } = await listenTls();
    await expect(send({ method: 'POST', url, headers: {}, body: 'x' })).rejects.toThrow();
  });
});

async function listenTls(): Promise<{ url: string }> {
  const server = createTlsServer(SELF_SIGNED, echo);
  servers.add(server);
  const { port } = new URL(await listenAnywhere(server));
  return { url: `https://localhost:${port}` };
}

it('uses a connection again on Node', async () => {
  const { url, opened } = await listen(echo);
  for (let count = 0; count < 5; count += 1) await byNode({ method: 'POST', url, headers: {}, body: 'x' });
  expect(opened()).toBe(1);
});

it('speaks TLS', async () => {
  const trusted = getCACertificates('default');
  setDefaultCACertificates([...trusted, SELF_SIGNED.cert]);
  try {
    const { url } = await listenTls();
    const answer = await byNode({ method: 'POST', url, headers: {}, body: 'x' });
    expect(answer).toEqual({ status: 201, text: 'POST / undefined x' });
  } finally {
    setDefaultCACertificates(trusted);
  }
});

it('gives up a server that says nothing', async () => {
  const { url } = await listen(() => {});
  const impatient = nodeTransport(20);
  await expect(impatient?.({ method: 'GET', url, headers: {} })).rejects.toThrow('did not respond in time');
});

describe('a request that got no answer', () => {
  /** Breaks the first connections; counts what came. */
  async function failing(times: number) {
    let count = 0;
    const { url } = await listen((request, response) => {
      count += 1;
      if (count <= times) request.socket.destroy();
      else response.end('{}');
    });
    return { server: new Server(url, 'token', { retry: { retries: 2, backoff: () => 0 } }), count: () => count };
  }

  it('is sent again where it may be repeated', async () => {
    const { server, count } = await failing(2);
    expect(await server.send({ method: 'POST', path: '/', token: 'of a call', isRepeatable: true })).toEqual({
      status: 200,
      text: '{}',
    });
    expect(count()).toBe(3);
  });

  it('is sent again to a server that was started again meanwhile', async () => {
    const first = await listen(echo);
    const server = new Server(first.url, 'token');
    const ask = () => server.send({ method: 'POST', path: '/', token: 'of a call', isRepeatable: true });
    await Promise.all([ask(), ask(), ask()]);
    await crash(first);
    await listen(echo, first.port);
    expect((await ask()).status).toBe(201);
  });

  it('is given up after a few times', async () => {
    const { server, count } = await failing(9);
    await expect(server.send({ method: 'POST', path: '/', token: 'of a call', isRepeatable: true })).rejects.toThrow(
      'cannot be reached',
    );
    expect(count()).toBe(3);
  });

  it('is not sent again where it may not', async () => {
    const { server, count } = await failing(1);
    await expect(server.send({ method: 'POST', path: '/', token: 'of a call' })).rejects.toThrow('cannot be reached');
    expect(count()).toBe(1);
  });
});
