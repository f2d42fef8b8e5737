/**
 * Measures the memory that remains after an attack. Thousands of hostile endpoints respond with large bodies, with invalid data, or
 * not at all; then the server is idle, and should return unused memory.
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
  /** Size of a large response. */
  responseBytes: number;
  timeoutMs: number;
  /** Seconds after the last attempt at which the memory is measured. */
  readAtS: readonly number[];
}

export const DEFAULT_MEMORY: MemoryWorkload = {
  origins: 11_000,
  messagesEach: 1,
  responseBytes: 2 * 1024 * 1024,
  timeoutMs: 5_000,
  readAtS: [0, 10, 30, 60],
};

/** Messages per batch. */
const BATCH_MESSAGES = 100;
/** The attack has ended after this time without a request or a closed connection: hanging attempts have timed out by then. */
const QUIET_MS = 6_000;

export async function measureMemory(workload: MemoryWorkload): Promise<Figure[]> {
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-memory-'));
  const endpoints = await openHostile(workload.responseBytes);
  const server = await startWaypost({ dataDir });
  try {
    const resident = (name: string, value = residentMebibytes(server.pid)): Figure => ({ name, value, unit: 'MiB' });
    const figures = [resident('RSS after the start')];
    await publishAll(server.url, endpoints.port, workload);
    await endpoints.waitForQuiet(QUIET_MS);
    const endedAt = performance.now() - QUIET_MS;
    figures.push(resident('RSS, peak', residentPeakMebibytes(server.pid)));
    for (const seconds of workload.readAtS) {
      await sleep(Math.max(0, endedAt + seconds * 1_000 - performance.now()));
      figures.push(resident(`RSS ${seconds} s after the attack`));
    }
    return figures;
  } finally {
    await server.end('SIGKILL');
    await endpoints.close();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** The loopback address of an origin; one listener serves all of them. */
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
  for (let at = 0; at < items.length; at += BATCH_MESSAGES) {
    const response = await fetch(`${url}/v2/batch`, {
      method: 'POST',
      headers: { authorization: `Bearer ${DEVELOPMENT_TOKEN}` },
      body: JSON.stringify(items.slice(at, at + BATCH_MESSAGES)),
    });
    if (!response.ok) throw new Error(`the batch failed with status ${response.status}: ${await response.text()}`);
    await response.arrayBuffer();
  }
}

interface HostileEndpoints {
  port: number;
  /** Resolves after `forMs` without any network event. */
  waitForQuiet(forMs: number): Promise<void>;
  close(): Promise<void>;
}

async function openHostile(responseBytes: number): Promise<HostileEndpoints> {
  const large = Buffer.alloc(responseBytes, 'x');
  const head = `HTTP/1.1 500 Internal Server Error\r\nContent-Length: ${large.length}\r\n\r\n`;
  const behaviours: ((socket: net.Socket) => unknown)[] = [
    (socket) => socket.write(head) && socket.write(large),
    () => {},
    (socket) => socket.write(`HTTP/1.1 200 OK\r\n${'X-A: b\r\n'.repeat(10_000)}`),
    (socket) => socket.end('garbage\r\n\r\n'),
    (socket) => socket.resetAndDestroy(),
  ];
  const sockets = new Set<net.Socket>();
  let lastEventAt = performance.now();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {}); // the server closed the connection
    socket.on('close', () => {
      sockets.delete(socket);
      lastEventAt = performance.now();
    });
    socket.on('data', (data) => {
      lastEventAt = performance.now();
      const path = /^POST \/(\w+)/.exec(data.toString('latin1'))?.[1];
      if (path !== undefined) behaviours[Number(path) % behaviours.length]?.(socket);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '0.0.0.0', 4_096, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    waitForQuiet: async (forMs) => {
      while (performance.now() < lastEventAt + forMs) await sleep(100);
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
