/**
 * Measures the recovery after an outage. Messages of many origins and projects became due while the server was down. When
 * the server starts, one origin is down, one is slow, and new messages come from projects without a backlog. Half of the
 * new messages are due at once, the other half after a second. The backlog is stored through the API before the server is
 * stopped; the benchmark then waits for its due time. At the same time messages go through a null relay, which has no
 * backlog: the latency of these messages shows the effect of the machine itself. The references, which are the best rate
 * and the idle server, are measured before and after, since the speed of machines varies.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { storeInBatches } from '../batches.ts';
import { type ListeningProcess, residentMebibytes, startListening } from '../child-process.ts';
import { type Parties, startCpuMeter } from '../cpu.ts';
import type { Figure } from '../figure.ts';
import { type LoadResult, type LoadTarget, publishAll, publishPacedUntil } from '../load.ts';
import { startDatabase } from '../postgres/database.ts';
import { createProjects } from '../projects.ts';
import { type Receiver, startReceiver } from '../receiver-process.ts';
import { arrivalDelaysMs, median, quantile } from '../statistics.ts';
import { startWaypost } from '../waypost-process.ts';
import { overtakenMax } from './due-order.ts';
import { DOWN, type Origins, type OriginsReport, startOrigins } from './origins-process.ts';

export interface OutageOptions {
  messages: number;
  origins: number;
  projects: number;
  /** The due times of the backlog are spread over this many seconds. */
  dueSeconds: number;
  /** How long the origin that is down stays down after the start of the server. */
  downMs: number;
  freshPerSecond: number;
  /** Total time for which the latency of new messages is measured without a backlog. */
  idleSeconds: number;
  /** Messages of the burst that measures the best rate of the machine. */
  burstMessages: number;
  /** Whether workers are on PostgreSQL. */
  isPostgres: boolean;
  onFigure?: (figure: Figure) => void;
}

export const DEFAULT_OUTAGE = {
  messages: 1_000_000,
  origins: 1_000,
  projects: 10,
  dueSeconds: 20,
  downMs: 10_000,
  freshPerSecond: 500,
  idleSeconds: 30,
  burstMessages: 30_000,
};

export interface OutageReport {
  figures: Figure[];
  /** The maximum number of concurrent requests at the slow origin, by second since its first request. */
  slowRise: number[];
  lost: number;
}

/** The minimum rate of storing, per second. Due times follow from it, so that no message is due before all are stored. */
const STORED_PER_SECOND = { embedded: 15_000, postgres: 5_000 };
const FRESH_DELAY_S = 1;
const RELAY = fileURLToPath(new URL('../null-relay.ts', import.meta.url));
/** Maximum duration of the recovery. */
const FRESH_SECONDS_MAX = 1_800;
const RETRIES = { 'Upstash-Retries': '5', 'Upstash-Retry-Delay': '4000' };

export async function measureOutage(options: OutageOptions): Promise<OutageReport> {
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-outage-'));
  const database = options.isPostgres ? await startDatabase() : undefined;
  const origins = await startOrigins(options.origins);
  const receivers = [await startReceiver('bare'), await startReceiver('bare'), await startReceiver('bare')] as const;
  const relay = await startListening([RELAY]);
  const report: OutageReport = { figures: [], slowRise: [], lost: 0 };
  const note = (figure: Figure) => {
    report.figures.push(figure);
    options.onFigure?.(figure);
  };
  const env = database?.env ?? {};
  const start = () =>
    startWaypost({
      dataDir,
      env,
      command: 'serve',
      flags: ['--allow-destinations', 'loopback'],
      startLimitMs: 120_000,
    });
  const tokens = await createProjects(dataDir, options.projects + 2, env);
  let server = await start();
  try {
    const parties = () => ({ Waypost: [server.pid], ...database?.parties });
    const [atOnce = '', delayed = ''] = tokens.slice(-2);
    const fresh = () =>
      new FreshMessages(options.freshPerSecond / 2, [
        freshTo(server, atOnce, receivers[0]),
        freshTo(server, delayed, receivers[1], { 'Upstash-Delay': `${FRESH_DELAY_S}s` }),
        freshTo(relay, '', receivers[2]),
      ]);
    const measureBest = () => measureBurst(server, delayed, receivers[0], parties(), options);
    const measureIdle = () => fresh().during(sleep((options.idleSeconds / 2) * 1_000));
    const bestBefore = await measureBest();
    const idleBefore = await measureIdle();
    const dueAtS = await store(server, tokens.slice(0, options.projects), origins, options);
    const early = await origins.expect(options.messages);
    await server.end('SIGTERM');
    await sleep(dueAtS * 1_000 + options.dueSeconds * 1_000 - Date.now());

    const startedNs = process.hrtime.bigint();
    server = await start();
    const cpu = startCpuMeter(parties());
    const memory = watchMemory(server);
    setTimeout(() => origins.up(), options.downMs);
    let drainedCpu: Record<string, number> = {};
    const loaded = await fresh().during(
      early.drained.then(() => {
        drainedCpu = cpu.read();
      }),
    );
    await early.complete;
    const seen = await origins.report();
    const figuresOfMemory = memory.read();
    const idle = mergeLatencies(idleBefore, await measureIdle());
    noteLatencies(note, idle, loaded);
    const best = [bestBefore, await measureBest()];
    noteDrain(note, seen, startedNs, best, { ...options, freshMessages: loaded.messages, drainedCpu });
    for (const figure of figuresOfMemory) note(figure);
    report.slowRise = seen.slowRise;
    report.lost = seen.missing + idle.missing + loaded.missing;
    return report;
  } finally {
    await server.end('SIGKILL');
    await Promise.all([relay.end('SIGKILL'), origins.end(), ...receivers.map((receiver) => receiver.end())]);
    await database?.end();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

interface BurstRate {
  perSecond: number;
  cpuMs: number;
}

/** Measures the best rate of the machine: messages from publish to arrival, with 64 concurrent requests. */
async function measureBurst(
  server: ListeningProcess,
  token: string,
  receiver: Receiver,
  parties: Parties,
  { burstMessages }: OutageOptions,
): Promise<BurstRate> {
  const target: LoadTarget = { peers: 'bare', url: server.url, token, destination: `${receiver.url}/` };
  await receiver.expect(burstMessages);
  await publishAll(target, burstMessages); // warm-up: compilation
  await receiver.complete(60_000);
  await receiver.expect(burstMessages);
  const cpu = startCpuMeter(parties);
  const { startedNs } = await publishAll(target, burstMessages);
  await receiver.complete(60_000);
  const { lastArrivalNs } = await receiver.report();
  return {
    perSecond: burstMessages / (Number(lastArrivalNs - startedNs) / 1e9),
    cpuMs: (sum(cpu.read()) / burstMessages) * 1e6,
  };
}

/** Publishes the backlog with future due times, and returns the first due time, in Unix seconds. */
async function store(
  server: ListeningProcess,
  tokens: readonly string[],
  origins: Origins,
  { messages, dueSeconds, isPostgres }: OutageOptions,
): Promise<number> {
  const perSecond = STORED_PER_SECOND[isPostgres ? 'postgres' : 'embedded'];
  const firstDueS = Math.ceil(Date.now() / 1_000 + messages / perSecond) + 5;
  for (const [project, token] of tokens.entries()) {
    const count = Math.ceil((messages - project) / tokens.length);
    await storeInBatches({ url: server.url, token }, count, (index) => {
      const nth = project + index * tokens.length;
      return {
        destination: origins.urls[nth % origins.urls.length] ?? '',
        headers: { 'Upstash-Not-Before': String(firstDueS + Math.floor((nth / messages) * dueSeconds)), ...RETRIES },
        body: String(nth).padStart(10, '0').padEnd(200, 'x'),
      };
    });
  }
  if (Date.now() >= firstDueS * 1_000)
    throw new Error('the first messages became due before the last ones were stored');
  return firstDueS;
}

interface Latencies {
  /** From publish to arrival, for messages without a delay. */
  atOnceMs: number[];
  /** From the requested time to arrival, for delayed messages. */
  delayedMs: number[];
  /** From publish to arrival, through the relay. */
  relayedMs: number[];
  /** Messages through Waypost. */
  messages: number;
  missing: number;
}

interface Stream {
  target: LoadTarget;
  receiver: Receiver;
}

function freshTo(
  { url }: ListeningProcess,
  token: string,
  receiver: Receiver,
  headers: Record<string, string> = {},
): Stream {
  return { target: { peers: 'bare', url, token, destination: `${receiver.url}/`, headers }, receiver };
}

/** Publishes through the relay, and for two projects without a backlog: one with messages due at once, one after 1 s. */
class FreshMessages {
  readonly #streams: readonly [Stream, Stream, Stream];
  readonly #perSecond: number;

  constructor(perSecond: number, streams: readonly [Stream, Stream, Stream]) {
    this.#perSecond = perSecond;
    this.#streams = streams;
  }

  async during(event: Promise<unknown>): Promise<Latencies> {
    const end = new AbortController();
    const max = this.#perSecond * FRESH_SECONDS_MAX;
    for (const { receiver } of this.#streams) await receiver.expect(max);
    const published = this.#streams.map(({ target }) => publishPacedUntil(end.signal, target, max, this.#perSecond));
    await event;
    end.abort();
    const [atOnce, delayed, relayed] = await Promise.all(
      published.map(async (each, nth) => this.#delaysOf(await each, nth)),
    );
    const atOnceMs = atOnce?.delaysMs ?? [];
    const delayedMs = (delayed?.delaysMs ?? []).map((ms) => ms - FRESH_DELAY_S * 1_000);
    const missing = (atOnce?.missing ?? 0) + (delayed?.missing ?? 0);
    const messages = atOnceMs.length + delayedMs.length;
    return { atOnceMs, delayedMs, relayedMs: relayed?.delaysMs ?? [], messages, missing };
  }

  async #delaysOf({ sentNs }: LoadResult, nth: number): Promise<{ delaysMs: number[]; missing: number }> {
    const sent = sentNs.findLastIndex((atNs) => atNs !== 0n) + 1;
    for (let tries = 0; ; tries += 1) {
      await sleep(FRESH_DELAY_S * 1_000);
      const arrived = await this.#streams[nth]?.receiver.report();
      if (!arrived) throw new Error('no receiver');
      if (arrived.distinct < sent && tries < 60) continue;
      return { delaysMs: arrivalDelaysMs(sentNs, arrived.arrivalsNs), missing: sent - arrived.distinct };
    }
  }
}

function mergeLatencies(one: Latencies, other: Latencies): Latencies {
  return {
    atOnceMs: [...one.atOnceMs, ...other.atOnceMs],
    delayedMs: [...one.delayedMs, ...other.delayedMs],
    relayedMs: [...one.relayedMs, ...other.relayedMs],
    messages: one.messages + other.messages,
    missing: one.missing + other.missing,
  };
}

function noteLatencies(note: (figure: Figure) => void, idle: Latencies, loaded: Latencies): void {
  const p99 = (name: string, ms: (latencies: Latencies) => number[], q = 0.99) =>
    note({
      name,
      value: quantile(ms(loaded), q),
      unit: 'ms',
      reference: { name: 'idle, before and after', value: quantile(ms(idle), q) },
    });
  p99('new messages, publish to arrival, p50', ({ atOnceMs }) => atOnceMs, 0.5);
  p99('new messages, publish to arrival, p99', ({ atOnceMs }) => atOnceMs);
  p99('new delayed messages, due time to arrival, p50', ({ delayedMs }) => delayedMs, 0.5);
  p99('new delayed messages, due time to arrival, p99', ({ delayedMs }) => delayedMs);
  p99('null relay at the same time, publish to arrival, p50', ({ relayedMs }) => relayedMs, 0.5);
  p99('null relay at the same time, publish to arrival, p99', ({ relayedMs }) => relayedMs);
}

interface DrainFigures extends Pick<OutageOptions, 'messages' | 'origins' | 'dueSeconds'> {
  freshMessages: number;
  drainedCpu: Record<string, number>;
}

/** Reports the figures of the origins that are neither slow nor down. */
function noteDrain(
  note: (figure: Figure) => void,
  { arrivalsNs, concurrentMax, unansweredMax, repeated }: OriginsReport,
  startedNs: bigint,
  best: readonly BurstRate[],
  { messages, origins, dueSeconds, freshMessages, drainedCpu }: DrainFigures,
): void {
  const isHealthy = (nth: number) => nth % origins > 1;
  const healthyNs = arrivalsNs.filter((_, nth) => isHealthy(nth));
  const [firstNs, lastNs] = [healthyNs.reduce(min), healthyNs.reduce(max)];
  const seconds = Number(lastNs - firstNs) / 1e9;
  const delivered = healthyNs.length + freshMessages;
  note({ name: 'from the start to the first arrival', value: Number(firstNs - startedNs) / 1e9, unit: 's' });
  note({ name: 'from the first arrival until the backlog is delivered', value: seconds, unit: 's' });
  note({
    name: 'delivery rate, including new messages',
    value: delivered / seconds,
    unit: 'messages/s',
    reference: { name: 'bursts, before and after', value: median(best.map(({ perSecond }) => perSecond)) },
  });
  note({
    name: 'CPU for 1,000 messages',
    value: (sum(drainedCpu) / delivered) * 1e6,
    unit: 'ms',
    reference: { name: 'bursts, before and after', value: median(best.map(({ cpuMs }) => cpuMs)) },
  });
  const dueOf = (nth: number) => Math.floor((nth / messages) * dueSeconds);
  const overtaken = Array.from({ length: origins }, (_, origin) =>
    origin === DOWN ? 0 : overtakenMax(arrivalsNs, { origin, origins, dueOf }),
  );
  note({
    name: 'overtaken messages at one origin, max',
    value: Math.max(...overtaken),
    unit: 'messages',
  });
  note({ name: 'overtaken messages, median of the origins', value: median(overtaken), unit: 'messages' });
  note({ name: 'concurrent requests at one origin, max', value: concurrentMax, unit: 'messages' });
  note({ name: 'concurrent requests before its first response, max', value: unansweredMax, unit: 'messages' });
  note({ name: 'repeated arrivals', value: repeated, unit: 'messages' });
}

/** Samples the memory twice a second until `read`. */
function watchMemory(server: ListeningProcess): { read(): Figure[] } {
  const samples: number[] = [];
  const timer = setInterval(() => samples.push(residentMebibytes(server.pid)), 500);
  return {
    read() {
      clearInterval(timer);
      const at = (share: number) => samples[Math.floor((samples.length - 1) * share)] ?? Number.NaN;
      return [
        { name: 'RSS, peak', value: Math.max(...samples), unit: 'MiB' },
        {
          name: 'RSS when the backlog is delivered',
          value: at(1),
          unit: 'MiB',
          reference: { name: 'after a third of the time', value: at(1 / 3) },
        },
      ];
    },
  };
}

function sum(byParty: Record<string, number>): number {
  return Object.values(byParty).reduce((a, b) => a + b, 0);
}

function min(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}

function max(a: bigint, b: bigint): bigint {
  return a > b ? a : b;
}
