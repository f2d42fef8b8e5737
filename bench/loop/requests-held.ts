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

export interface HeldLoop {
  name: string;
  status: number;
  /** The longest block of the event loop, from the request until a moment after its response. */
  heldMs: number;
  tookMs: number;
  answer: string;
}

/** The maximum time that one request may block the event loop. */
export const HELD_MS_MAX = 50;

/** On a shared machine a process may be descheduled for tens of milliseconds, so the minimum of these counts. */
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

/** Time for accepted messages to be stored. */
const AFTERWARDS_MS = 150;

export async function measureLoop(onRequest: (held: HeldLoop) => void = () => {}): Promise<HeldLoop[]> {
  const folder = mkdtempSync(join(tmpdir(), 'waypost-loop-'));
  const watch = join(folder, 'watch');
  const server = await startWaypost({
    dataDir: folder,
    env: { WAYPOST_LOOP_WATCH: watch, NODE_OPTIONS: `--import ${new URL('./watch.ts', import.meta.url).href}` },
  });
  try {
    const all: HeldLoop[] = [];
    for (let nth = 0; nth < WARM_UP; nth += 1) await send(server.url, SMALL);
    for (const make of [heavyHeads, heavyJson, heavyBodies, heavyBatches]) {
      for (const request of make()) {
        let held = await heldBy(server.url, watch, request);
        for (let more = 1; more < TRIES_MAX && held.heldMs > HELD_MS_MAX; more += 1) {
          const again = await heldBy(server.url, watch, request);
          if (again.heldMs < held.heldMs) held = again;
        }
        onRequest(held);
        all.push(held);
      }
    }
    return all;
  } finally {
    await server.end('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
}

async function heldBy(url: string, watch: string, request: HeavyRequest): Promise<HeldLoop> {
  await longestMs(watch); // resets the maximum
  const startedAt = performance.now();
  const { status, answer } = await send(url, request);
  const tookMs = performance.now() - startedAt;
  await sleep(AFTERWARDS_MS);
  return { name: request.name, status, heldMs: await longestMs(watch), tookMs, answer: answer.slice(0, 100) };
}

async function longestMs(watch: string): Promise<number> {
  return Number(await text(connect(watch)));
}

/** Resolves with status 0 if the connection was closed instead. */
export function send(
  url: string,
  { method, target, headers, body, isChunked }: HeavyRequest,
): Promise<{ status: number; answer: string }> {
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
    request.on('response', async (response) => {
      resolve({ status: response.statusCode ?? 0, answer: await text(response) });
    });
    request.on('error', (error) => resolve({ status: 0, answer: String(error) }));
    request.end(body);
  });
}
