/**
 * Measures the cost of queues, flow-control keys and schedules, and the delay that blocked queues and keys cause. Each
 * figure is compared with the same measurement on an idle server, or with its bound, in the same run.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { delayedItem, storeInBatches } from './batches.ts';
import { type ListeningProcess, residentMebibytes } from './child-process.ts';
import type { Figure } from './figure.ts';
import { flush } from './flush.ts';
import { type LoadTarget, publishAll } from './load.ts';
import { probe, probeThrice } from './probe.ts';
import { type Receiver, startReceiver } from './receiver-process.ts';
import { quantile } from './statistics.ts';
import { DEVELOPMENT_TOKEN, startWaypost } from './waypost-process.ts';

export interface LanesOptions {
  /** Messages through a queue of parallelism 1. */
  queueMessages: number;
  /** Due messages: half of them have a paused key, the other half a key whose rate limit is used up. */
  blockedMessages: number;
  /** Messages that measure latency, at a fixed rate. */
  probeMessages: number;
  keys: number;
  queues: number;
  /** Schedules that trigger in the same minute; 0 skips the measurement. */
  schedules: number;
  /** Delayed messages that are cancelled by one request. */
  cancelledMessages: number;
  /** Idle time before the memory is measured. */
  quietMs: number;
  onFigure?: (figure: Figure) => void;
}

export const DEFAULT_LANES: LanesOptions = {
  queueMessages: 5_000,
  blockedMessages: 50_000,
  probeMessages: 1_000,
  keys: 100_000,
  queues: 10_000,
  schedules: 10_000,
  cancelledMessages: 1_000_000,
  quietMs: 3_000,
};

const LISTINGS = 200;

export async function measureLanes(options: LanesOptions): Promise<Figure[]> {
  const figures: Figure[] = [];
  const note = (figure: Figure) => {
    figures.push(figure);
    options.onFigure?.(figure);
  };
  const receiver = await startReceiver('ordinary');
  try {
    const scheduleMeasures = options.schedules === 0 ? [] : [measureSchedules];
    for (const measure of [measureQueue, measureBlocked, measureMany, ...scheduleMeasures, measureCancel]) {
      await withServer(async (server) => {
        for (const figure of await measure(server, receiver, options)) note(figure);
      });
    }
  } finally {
    await receiver.end();
  }
  return figures;
}

/** Each measurement has its own server, with an empty store. */
async function withServer(use: (server: ServerWithData) => Promise<void>): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-lanes-'));
  const server = await startWaypost({
    dataDir,
    flags: ['--queues-max', '0', '--schedules-max', '0', '--drain-limit', '0s'],
  });
  try {
    await use({ ...server, dataDir });
  } finally {
    await server.end('SIGTERM');
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** A server and its data folder. */
type ServerWithData = ListeningProcess & { dataDir: string };

type Measure = (server: ServerWithData, receiver: Receiver, options: LanesOptions) => Promise<Figure[]>;

/** Measures a queue of parallelism 1: each message waits for the response to the previous one, and for the commit of its outcome. */
const measureQueue: Measure = async (server, receiver, { queueMessages }) => {
  await deliverAll(receiver, target(server, receiver), queueMessages); // warm-up: compilation and new connections
  const queue = await deliverAll(receiver, { ...target(server, receiver), queue: 'orders' }, queueMessages);
  const free = await deliverAll(receiver, target(server, receiver), queueMessages);
  return [
    {
      name: 'queue with parallelism 1',
      value: queue,
      unit: 'messages/s',
      reference: { name: 'without a queue', value: free },
    },
  ];
};

/** Messages of a paused key and of a key whose rate limit is used up become due before messages of a healthy key. */
const measureBlocked: Measure = async (server, receiver, { blockedMessages, probeMessages, quietMs }) => {
  const healthy = { ...target(server, receiver), headers: flowControl('healthy', 'parallelism=100') };
  await probe(receiver, healthy, probeMessages);
  const idle = await probeThrice(receiver, healthy, probeMessages);
  await call(server, 'POST', '/v2/flowControl/paused/pause');
  const dueAtS = Math.ceil((Date.now() + quietMs) / 1_000) + Math.ceil(blockedMessages / 1_500);
  for (const [key, limit] of [
    ['paused', 'parallelism=10'],
    ['full', 'rate=1, period=7d'],
  ] as const) {
    await storeInBatches(server, blockedMessages / 2, () => ({
      destination: `${receiver.url}/`,
      headers: { ...flowControl(key, limit), 'Upstash-Not-Before': String(dueAtS) },
      body: 'x'.repeat(200),
    }));
  }
  await sleep(Math.max(0, dueAtS * 1_000 - Date.now()));
  const blocked = await probeThrice(receiver, healthy, probeMessages);
  return [
    {
      name: `p99 of a healthy key behind ${blockedMessages} due messages of blocked keys`,
      value: blocked.arrivalP99Ms,
      unit: 'ms',
      reference: { name: 'idle', value: idle.arrivalP99Ms },
    },
    { name: 'probes that never arrived', value: idle.missing + blocked.missing, unit: 'messages' },
  ];
};

/** Measures thousands of keys and queues. */
const measureMany: Measure = async (server, receiver, { keys, queues, quietMs }) => {
  await storeInBatches(server, Math.ceil(keys / 10), () => plainItem(receiver));
  await sleep(quietMs);
  const before = residentMebibytes(server.pid);
  await storeInBatches(server, keys, (index) => ({
    ...plainItem(receiver),
    headers: flowControl(`key-${index}`, 'parallelism=1'),
  }));
  await storeInBatches(server, queues, (index) => ({ ...plainItem(receiver), queue: `queue-${index}` }));
  flush(server.dataDir);
  await sleep(quietMs);
  const after = residentMebibytes(server.pid);
  const keyPage = await listingMs(server, '/v2/flowControl?count=1000');
  const queuePage = await listingMs(server, '/v2/queues?count=1000');
  return [
    { name: `additional RSS with ${keys} keys and ${queues} queues`, value: after - before, unit: 'MiB' },
    { name: 'p99 of a page of 1,000 keys', value: keyPage, unit: 'ms' },
    { name: 'p99 of a page of 1,000 queues', value: queuePage, unit: 'ms' },
  ];
};

/** All schedules trigger in the same minute: measures the time from the start of that minute to the last arrival. */
const measureSchedules: Measure = async (server, receiver, { schedules }) => {
  await receiver.expect(schedules);
  const minuteMs = minuteAfterCreating(schedules);
  const minute = new Date(minuteMs);
  const cron = `${minute.getUTCMinutes()} ${minute.getUTCHours()} * * *`;
  let next = 0;
  const create = async () => {
    while (next < schedules) {
      const body = String(next++).padStart(10, '0').padEnd(200, 'x');
      await call(server, 'POST', `/v2/schedules/${receiver.url}/`, { 'Upstash-Cron': cron }, body);
    }
  };
  await Promise.all(Array.from({ length: 16 }, create));
  if (Date.now() > minuteMs) throw new Error('creating the schedules took longer than expected');
  await receiver.complete(minuteMs - Date.now() + 60_000);
  const { distinct, repeated, lastArrivalNs } = await receiver.report();
  const sinceArrivalMs = Number(process.hrtime.bigint() - lastArrivalNs) / 1e6;
  return [
    {
      name: `${schedules} schedules in one minute: until the last message arrived`,
      value: (Date.now() - sinceArrivalMs - minuteMs) / 1_000,
      unit: 's',
    },
    { name: 'messages missing or repeated', value: schedules - distinct + repeated, unit: 'messages' },
  ];
};

/** One request cancels all messages while others are published. */
const measureCancel: Measure = async (server, receiver, { cancelledMessages, probeMessages, quietMs }) => {
  const free = target(server, receiver);
  await probe(receiver, free, probeMessages);
  const idle = await probe(receiver, free, probeMessages);
  await storeInBatches(server, cancelledMessages, () => delayedItem(`${receiver.url}/`));
  flush(server.dataDir);
  await sleep(quietMs);
  const startedAt = performance.now();
  let tookMs: number | undefined;
  const cancelling = call(server, 'DELETE', '/v2/messages').then((text) => {
    tookMs = performance.now() - startedAt;
    return (JSON.parse(text) as { cancelled: number }).cancelled;
  });
  const publishMs: number[] = [];
  while (tookMs === undefined) publishMs.push(...(await probe(receiver, free, probeMessages)).publishMs);
  const cancelled = await cancelling;
  return [
    {
      name: `publish p99 while ${cancelled} messages are cancelled`,
      value: quantile(publishMs, 0.99),
      unit: 'ms',
      reference: { name: 'idle', value: quantile(idle.publishMs, 0.99) },
    },
    { name: 'duration of the cancel', value: tookMs / 1_000, unit: 's' },
  ];
};

function target(server: ListeningProcess, receiver: Receiver): LoadTarget {
  return { peers: 'ordinary', url: server.url, token: DEVELOPMENT_TOKEN, destination: `${receiver.url}/` };
}

function flowControl(key: string, value: string): Record<string, string> {
  return { 'Upstash-Flow-Control-Key': key, 'Upstash-Flow-Control-Value': value };
}

function plainItem(receiver: Receiver) {
  return { destination: `${receiver.url}/`, headers: {}, body: 'x'.repeat(200) };
}

/** Publishes as fast as responses arrive; returns the rate of arrivals per second, from the first publish to the last arrival. */
async function deliverAll(receiver: Receiver, to: LoadTarget, messages: number): Promise<number> {
  await receiver.expect(messages);
  const published = await publishAll(to, messages);
  if (!(await receiver.complete(120_000))) throw new Error('not all messages arrived');
  const { lastArrivalNs } = await receiver.report();
  return messages / (Number(lastArrivalNs - published.startedNs) / 1e9);
}

async function listingMs(server: ListeningProcess, path: string): Promise<number> {
  await call(server, 'GET', path); // warm-up: the first list starts the reader thread
  const times: number[] = [];
  for (let i = 0; i < LISTINGS; i += 1) {
    const startedAt = performance.now();
    await call(server, 'GET', path);
    times.push(performance.now() - startedAt);
  }
  return quantile(times, 0.99);
}

/** The start of a minute, late enough to create all schedules first. */
function minuteAfterCreating(schedules: number): number {
  const readyMs = Date.now() + 2_000 + schedules * 4;
  return Math.ceil(readyMs / 60_000) * 60_000;
}

/** Returns the body of the response. Throws unless the status is 2xx. */
async function call(
  server: ListeningProcess,
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  headers: Record<string, string> = {},
  body: string | null = null,
): Promise<string> {
  const response = await request(`${server.url}${path}`, {
    method,
    headers: { authorization: `Bearer ${DEVELOPMENT_TOKEN}`, ...headers },
    body,
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const text = await response.body.text();
  if (response.statusCode > 299) throw new Error(`${method} ${path}: ${response.statusCode} ${text.slice(0, 300)}`);
  return text;
}
