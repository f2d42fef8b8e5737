/**
 * The reference: the same HTTP on both sides as Waypost, with nothing in between. The relay reads each publish, responds
 * at once as a queue does, and forwards the body with undici. The relay has no store, signatures or retries; a crash
 * loses all pending messages. `node bench/null-relay.ts [connections per origin]`; by default 256, as in Waypost.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Pool } from 'undici';

const PUBLISH = '/v2/publish/';
const connectionsPerOrigin = Number(process.argv[2] ?? 256);

const pools = new Map<string, Pool>();
let published = 0;
let failed = 0;

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => relay(request, response, chunks));
});

function relay(request: IncomingMessage, response: ServerResponse, chunks: Buffer[]): void {
  const target = request.url ?? '';
  if (request.method !== 'POST' || !target.startsWith(PUBLISH)) {
    response.writeHead(404, { 'content-length': 0 }).end();
    return;
  }
  published += 1;
  const messageId = `msg_${published}`;
  const result = JSON.stringify({ messageId });
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': result.length });
  response.end(result);
  const destination = new URL(target.slice(PUBLISH.length));
  const body = chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks);
  void forward(destination, messageId, body);
}

async function forward(destination: URL, messageId: string, body: Buffer): Promise<void> {
  try {
    const response = await poolOf(destination.origin).request({
      path: destination.pathname + destination.search,
      method: 'POST',
      headers: { 'content-type': 'application/octet-stream', 'upstash-message-id': messageId },
      body,
    });
    await response.body.dump();
  } catch (error) {
    // A relay does not retry: the receiver's count will be short, and this line explains it.
    failed += 1;
    process.stderr.write(`forwarding failed (${failed}): ${String(error)}\n`);
  }
}

function poolOf(origin: string): Pool {
  let pool = pools.get(origin);
  if (pool === undefined) {
    pool = new Pool(origin, { connections: connectionsPerOrigin, pipelining: 1 });
    pools.set(origin, pool);
  }
  return pool;
}

server.listen(0, '127.0.0.1', () => {
  const { port } = server.address() as AddressInfo;
  process.stdout.write(`${JSON.stringify({ event: 'listening', url: `http://127.0.0.1:${port}` })}\n`);
});
process.once('SIGTERM', () => process.exit(0));
