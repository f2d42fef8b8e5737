/** Measures how long a single request blocks the server's event loop. */
import { mkdtempSync, rmSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { startWaypost } from '../waypost-process.ts';
import { AUTHORIZATION, type HeavyRequest, heavyBatches, heavyBodies, heavyHeads, heavyJson } from './requests.ts';

export interface LoopBlock {
  name: string;
  status: number;
  /** The longest block of the event loop between the request and `AFTER_RESPONSE_MS` after its response. */
  blockedMs: number;
  responseMs: number;
  response: string;
}

/** The maximum time that one request may block the event loop. */
export const BLOCKED_MS_MAX = 50;

/** On a shared machine a process may be descheduled for tens of milliseconds, so a long block is measured again, and the minimum counts. */
const TRIES_MAX = 3;

/** Requests that compile the code first. */
const WARM_UP = 200;
const SMALL: HeavyRequest = {
  name: 'a small publish',
  method: 'POST',
  target: '/v2/publish/http://127.0.0.1:1/',
  headers: { 'Upstash-Delay': '1h' },
  body: 'x',
};

/** The time after a response in which accepted messages are stored. */
const AFTER_RESPONSE_MS = 150;

export async function measureLoopBlocks(onBlock: (block: LoopBlock) => void = () => {}): Promise<LoopBlock[]> {
  const folder = mkdtempSync(join(tmpdir(), 'waypost-loop-'));
  const watch = join(folder, 'watch');
  const server = await startWaypost({
    dataDir: folder,
    env: { WAYPOST_LOOP_WATCH: watch, NODE_OPTIONS: `--import ${new URL('./watch.ts', import.meta.url).href}` },
  });
  try {
    const all: LoopBlock[] = [];
    for (let nth = 0; nth < WARM_UP; nth += 1) await send(server.url, SMALL);
    for (const make of [heavyHeads, heavyJson, heavyBodies, heavyBatches]) {
      for (const request of make()) {
        let block = await measureBlock(server.url, watch, request);
        for (let more = 1; more < TRIES_MAX && block.blockedMs > BLOCKED_MS_MAX; more += 1) {
          const again = await measureBlock(server.url, watch, request);
          if (again.blockedMs < block.blockedMs) block = again;
        }
        onBlock(block);
        all.push(block);
      }
    }
    return all;
  } finally {
    await server.end('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measureBlock(url: string, watch: string, request: HeavyRequest): Promise<LoopBlock> {
  await longestMs(watch); // resets the maximum
  const startedAt = performance.now();
  const { status, response } = await send(url, request);
  const responseMs = performance.now() - startedAt;
  await sleep(AFTER_RESPONSE_MS);
  return {
    name: request.name,
    status,
    blockedMs: await longestMs(watch),
    responseMs,
    response: response.slice(0, 100),
  };
}

async function longestMs(watch: string): Promise<number> {
  return Number(await text(connect(watch)));
}

/** Resolves with status 0 if the connection was closed without a response. */
export function send(
  url: string,
  { method, target, headers, body, isChunked }: HeavyRequest,
): Promise<{ status: number; response: string }> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const length = body === undefined || isChunked ? undefined : { 'Content-Length': Buffer.byteLength(body) };
    const request = httpRequest({
      ...{ hostname, port, method, path: target, agent: false },
      headers: {
        Authorization: AUTHORIZATION,
        ...headers,
        ...length,
        ...(isChunked && { 'Transfer-Encoding': 'chunked' }),
      },
    });
    request.on('response', async (incoming) => {
      resolve({ status: incoming.statusCode ?? 0, response: await text(incoming) });
    });
    request.on('error', (error) => resolve({ status: 0, response: String(error) }));
    request.end(body);
  });
}
