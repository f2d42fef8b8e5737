/**
 * Measures the cost of a backlog of millions of delayed messages: the server's memory and the latency of a publish at
 * each level, then the idle CPU use of the server with all messages stored, and the duration of its start with that data.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { delayedItem, storeInBatches } from './batches.ts';
import { cpuSeconds, type ListeningProcess, residentMebibytes } from './child-process.ts';
import { type LoadTarget, publishPaced } from './load.ts';
import { type Receiver, startReceiver } from './receiver-process.ts';
import { arrivalDelaysMs, median, quantile } from './statistics.ts';
import { DEVELOPMENT_TOKEN, startWaypost } from './waypost-process.ts';

export interface BacklogOptions {
  /**
   * Numbers of stored messages at which memory and latency are measured, ascending. Both are also measured with an empty
   * store.
   */
  levels: number[];
  /** Messages in one batch request. */
  batchMessages: number;
  /** Publishes at each level, at a fixed 500 per second. They are delivered at once. */
  probeMessages: number;
  /** Idle time before the memory or the idle CPU is measured. */
  quietMs: number;
  /** Duration of the measurement of the idle CPU use. */
  idleSeconds: number;
  onLevel?: (level: BacklogLevel) => void;
}

export const DEFAULT_BACKLOG = { batchMessages: 500, probeMessages: 3_000, quietMs: 2_000, idleSeconds: 10 };

export interface BacklogLevel {
  stored: number;
  /** Measured when the server is idle, before the probe. */
  residentMebibytes: number;
  publishP50Ms: number;
  publishP99Ms: number;
  arrivalP50Ms: number;
  arrivalP99Ms: number;
  /** Probe messages that never arrived. */
  missing: number;
}

export interface BacklogReport {
  levels: BacklogLevel[];
  /** Rate at which the backlog was accepted, without the probes. */
  acceptedPerSecond: number;
  /** Resident memory of a server that has just started on an empty folder. */
  idleEmptyMebibytes: number;
  /** CPU use of the idle server with all messages stored, in percent of one core. */
  idleCpuPercent: number;
  /** Time from the spawn to the log line with the server's address. */
  startEmptyMs: number;
  /** With the stored messages: the time from the spawn to that log line, and to the first 200 of /readyz. */
  startStoredMs: number;
  readyStoredMs: number;
}

const PROBE_PER_SECOND = 500;
/** Probes at each level, of which the medians are reported. */
const PROBES = 3;

export async function measureBacklog(options: BacklogOptions): Promise<BacklogReport> {
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-backlog-'));
  const receiver = await startReceiver('ordinary');
  let server = await startWaypost({ dataDir });
  try {
    const startEmptyMs = server.startMs;
    await sleep(options.quietMs);
    const idleEmptyMebibytes = residentMebibytes(server.pid);
    // Without this warm-up, compilation and new connections would make the empty store look slower than the full store.
    await probe(server, receiver, 0, options.probeMessages);
    const levels: BacklogLevel[] = [];
    let stored = 0;
    let acceptingMs = 0;
    for (const level of [0, ...options.levels]) {
      acceptingMs += await storeInBatches(
        server,
        level - stored,
        () => delayedItem(`${receiver.url}/`),
        options.batchMessages,
      );
      stored = level;
      // Flushes the page cache, so that writing the backlog to disk does not slow down the probe.
      execFileSync('sync');
      await sleep(options.quietMs);
      const probes: BacklogLevel[] = [];
      for (let at = 0; at < PROBES; at += 1) probes.push(await probe(server, receiver, stored, options.probeMessages));
      const measured = medianOf(probes);
      levels.push(measured);
      options.onLevel?.(measured);
    }
    await sleep(options.quietMs);
    const cpuBefore = cpuSeconds(server.pid);
    await sleep(options.idleSeconds * 1_000);
    const idleCpuPercent = ((cpuSeconds(server.pid) - cpuBefore) / options.idleSeconds) * 100;

    await server.end('SIGTERM');
    const restartedAt = performance.now();
    server = await startWaypost({ dataDir, startLimitMs: 120_000 });
    const startStoredMs = server.startMs;
    await untilReady(server);
    return {
      levels,
      acceptedPerSecond: acceptingMs === 0 ? 0 : stored / (acceptingMs / 1_000),
      idleEmptyMebibytes,
      idleCpuPercent,
      startEmptyMs,
      startStoredMs,
      readyStoredMs: performance.now() - restartedAt,
    };
  } finally {
    await server.end('SIGTERM');
    await receiver.end();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** The median of each figure, since other load on the machine distorts single probes. */
function medianOf(probes: BacklogLevel[]): BacklogLevel {
  const figure = (name: keyof BacklogLevel) => median(probes.map((each) => each[name]));
  return {
    stored: figure('stored'),
    residentMebibytes: Math.max(...probes.map((each) => each.residentMebibytes)),
    publishP50Ms: figure('publishP50Ms'),
    publishP99Ms: figure('publishP99Ms'),
    arrivalP50Ms: figure('arrivalP50Ms'),
    arrivalP99Ms: figure('arrivalP99Ms'),
    missing: probes.reduce((sum, each) => sum + each.missing, 0),
  };
}

async function probe(
  server: ListeningProcess,
  receiver: Receiver,
  stored: number,
  messages: number,
): Promise<BacklogLevel> {
  const resident = residentMebibytes(server.pid);
  await receiver.expect(messages);
  const target: LoadTarget = {
    peers: 'ordinary',
    url: server.url,
    token: DEVELOPMENT_TOKEN,
    destination: `${receiver.url}/`,
  };
  const published = await publishPaced(target, messages, PROBE_PER_SECOND);
  await receiver.complete(60_000);
  const arrived = await receiver.report();
  const delaysMs = arrivalDelaysMs(published.sentNs, arrived.arrivalsNs);
  return {
    stored,
    residentMebibytes: resident,
    publishP50Ms: quantile(published.publishMs, 0.5),
    publishP99Ms: quantile(published.publishMs, 0.99),
    arrivalP50Ms: quantile(delaysMs, 0.5),
    arrivalP99Ms: quantile(delaysMs, 0.99),
    missing: messages - arrived.distinct,
  };
}

async function untilReady(server: ListeningProcess): Promise<void> {
  for (;;) {
    const response = await request(`${server.url}/readyz`);
    await response.body.dump();
    if (response.statusCode === 200) return;
    await sleep(2);
  }
}
