/**
 * What memory stays behind when a storm is over? Thousands of hostile endpoints answer with a lot, with nonsense, or not at
 * all; then nothing happens any more, and the process is to give back what it does not need.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import net, { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { residentMebibytes, residentPeakMebibytes } from './child-process.ts';
import type { Figure } from './figure.ts';
import { DEVELOPMENT_TOKEN, startWaypost } from './waypost-process.ts';

export interface MemoryWorkload {
  /** Hostile endpoints, each an origin of its own. */
  origins: number;
  messagesEach: number;
  /** What an endpoint sends that sends a lot. */
  answerBytes: number;
  timeoutMs: number;
  /** Seconds after the last attempt at which the memory is read. */
  readAtS: readonly number[];
}

export const DEFAULT_MEMORY: MemoryWorkload = {
  origins: 11_000,
  messagesEach: 1,
  answerBytes: 2 * 1024 * 1024,
  timeoutMs: 5_000,
  readAtS: [0, 10, 30, 60],
};

/** Messages of one batch. */
const TOGETHER = 100;
/** So long after the last request and the last hang-up the storm is over: whoever hangs has timed out by then. */
const QUIET_MS = 6_000;

export async function measureMemory(workload: MemoryWorkload): Promise<Figure[]> {
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-memory-'));
  const endpoints = await openHostile(workload.answerBytes);
  const server = await startWaypost({ dataDir });
  try {
    const resident = (name: string, value = residentMebibytes(server.pid)): Figure => ({ name, value, unit: 'MiB' });
    const figures = [resident('RSS after the start')];
    await publishAll(server.url, endpoints.port, workload);
    await endpoints.quiet(QUIET_MS);
    const overAt = performance.now() - QUIET_MS;
    figures.push(resident('RSS, at most', residentPeakMebibytes(server.pid)));
    for (const seconds of workload.readAtS) {
      await sleep(Math.max(0, overAt + seconds * 1_000 - performance.now()));
      figures.push(resident(`RSS ${seconds} s after the storm`));
    }
    return figures;
  } finally {
    await server.end('SIGKILL');
    await endpoints.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** Loopback addresses are many: each is an origin, and one listener hears them all. */
function addressOf(origin: number): string {
  return `127.${1 + Math.floor(origin / 62_500)}.${Math.floor(origin / 250) % 250}.${1 + (origin % 250)}`;
}

async function publishAll(
  url: string,
  port: number,
  { origins, messagesEach, timeoutMs }: MemoryWorkload,
): Promise<void> {
  const headers = {
    'Upstash-Retries': '0',
    'Upstash-Timeout': `${timeoutMs / 1_000}s`,
  };
  const items = Array.from({ length: origins * messagesEach }, (_, nth) => ({
    destination: `http://${addressOf(nth % origins)}:${port}/${nth}`,
    body: String(nth),
    headers,
  }));
  for (let at = 0; at < items.length; at += TOGETHER) {
    const reply = await fetch(`${url}/v2/batch`, {
      method: 'POST',
      headers: { authorization: `Bearer ${DEVELOPMENT_TOKEN}` },
      body: JSON.stringify(items.slice(at, at + TOGETHER)),
    });
    if (!reply.ok) throw new Error(`the batch was answered ${reply.status}: ${await reply.text()}`);
    await reply.arrayBuffer();
  }
}

interface Hostile {
  port: number;
  /** Resolves when nothing was heard for so long. */
  quiet(forMs: number): Promise<void>;
  close(): Promise<void>;
}

async function openHostile(answerBytes: number): Promise<Hostile> {
  const large = Buffer.alloc(answerBytes, 'x');
  const head = `HTTP/1.1 500 Internal Server Error\r\nContent-Length: ${large.length}\r\n\r\n`;
  const tempers: ((socket: net.Socket) => unknown)[] = [
    (socket) => socket.write(head) && socket.write(large),
    () => {},
    (socket) => socket.write(`HTTP/1.1 200 OK\r\n${'X-A: b\r\n'.repeat(10_000)}`),
    (socket) => socket.end('garbage\r\n\r\n'),
    (socket) => socket.resetAndDestroy(),
  ];
  const sockets = new Set<net.Socket>();
  let heardAt = performance.now();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {}); // the server hangs up
    socket.on('close', () => {
      sockets.delete(socket);
      heardAt = performance.now();
    });
    socket.on('data', (data) => {
      heardAt = performance.now();
      const path = /^POST \/(\w+)/.exec(data.toString('latin1'))?.[1];
      if (path !== undefined) tempers[Number(path) % tempers.length]?.(socket);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '0.0.0.0', 4_096, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    quiet: async (forMs) => {
      while (performance.now() < heardAt + forMs) await sleep(100);
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
