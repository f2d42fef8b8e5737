/**
 * Measures deliveries while a project publishes more than can be delivered, and the latency of another project at the
 * same time. The number of connections increases, and the endpoint does little work. Each number of connections has its
 * own server.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cpuSeconds, residentMebibytes } from '../child-process.ts';
import { publishAll } from '../load.ts';
import { createProjects } from '../projects.ts';
import { type Receiver, startReceiver } from '../receiver-process.ts';
import { median, quantile } from '../statistics.ts';
import { startWaypost } from '../waypost-process.ts';
import type { OtherProject } from './other-project.ts';
import { type Published, publishFor } from './publishers.ts';

export interface OverloadOptions {
  connections: readonly number[];
  seconds: number;
  /** Rounds per number of connections: on a shared machine a single round is not reliable. */
  rounds: number;
  /** Unmeasured messages before each round, to compile code. */
  warmUpMessages: number;
  /** Workers of the server. */
  workers: number;
  /** A PostgreSQL to use instead of SQLite. */
  databaseUrl?: string;
  onRound?: (level: OverloadLevel) => void;
}

export const DEFAULT_OVERLOAD: OverloadOptions = {
  connections: [64, 256, 512, 1_500],
  seconds: 20,
  rounds: 3,
  warmUpMessages: 10_000,
  workers: 1,
};

/** Rates and sizes are medians of the rounds; latencies are over all rounds. */
export interface OverloadLevel {
  connections: number;
  ackedPerSecond: number;
  deliveredPerSecond: number;
  shedPerSecond: number;
  /** The latency of accepted publishes. */
  publishP99Ms: number;
  otherDelayedP99Ms: number;
  otherQueuedP99Ms: number;
  /** Publishes of the other project with status 503. */
  otherShed: number;
  otherMissing: number;
  /** CPU time of the server per second. On a shared machine the server does not get all cores. */
  cores: number;
  /** Resident memory after a third of the time, and at the end. */
  earlyMebibytes: number;
  lateMebibytes: number;
}

/** Upper bound of the rate, so that the endpoint knows which message numbers to expect. */
const PER_SECOND_MAX = 25_000;
const OTHER_PROJECT = fileURLToPath(new URL('./other-project.ts', import.meta.url));

export async function measureOverload(options: OverloadOptions): Promise<OverloadLevel[]> {
  const rounds = new Map<number, Round[]>(options.connections.map((connections) => [connections, []]));
  const receiver = await startReceiver('bare');
  try {
    for (let nth = 0; nth < options.rounds; nth += 1) {
      for (const [connections, ofLevel] of rounds) {
        const round = await measureRound(receiver, connections, options);
        ofLevel.push(round);
        options.onRound?.(levelOf(connections, [round], options.seconds));
      }
    }
  } finally {
    await receiver.end();
  }
  return [...rounds].map(([connections, ofLevel]) => levelOf(connections, ofLevel, options.seconds));
}

/** The result of one round of a level. */
interface Round {
  published: Published;
  /** Arrivals at the endpoint while messages were published. */
  delivered: number;
  other: OtherProject;
  cores: number;
  earlyMebibytes: number;
  lateMebibytes: number;
}

function levelOf(connections: number, rounds: readonly Round[], seconds: number): OverloadLevel {
  const middle = (pick: (round: Round) => number): number => median(rounds.map(pick));
  const p99 = (pick: (round: Round) => number[]): number => quantile(rounds.flatMap(pick), 0.99);
  const sum = (pick: (round: Round) => number): number => rounds.map(pick).reduce((a, b) => a + b, 0);
  return {
    connections,
    ackedPerSecond: middle(({ published }) => published.acked) / seconds,
    deliveredPerSecond: middle(({ delivered }) => delivered) / seconds,
    shedPerSecond: middle(({ published }) => published.shed) / seconds,
    publishP99Ms: p99(({ published }) => published.publishMs),
    otherDelayedP99Ms: p99(({ other }) => other.delayedMs),
    otherQueuedP99Ms: p99(({ other }) => other.queuedMs),
    otherShed: sum(({ other }) => other.shed),
    otherMissing: sum(({ other }) => other.missing),
    cores: middle(({ cores }) => cores),
    earlyMebibytes: middle(({ earlyMebibytes }) => earlyMebibytes),
    lateMebibytes: middle(({ lateMebibytes }) => lateMebibytes),
  };
}

async function measureRound(
  receiver: Receiver,
  connections: number,
  { seconds, warmUpMessages, workers, databaseUrl }: OverloadOptions,
): Promise<Round> {
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-overload-'));
  const flags = ['--workers', String(workers), '--allow-destinations', 'loopback'];
  const env = databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl };
  const [token = '', otherToken = ''] = await createProjects(dataDir, 2, env);
  const server = await startWaypost({ dataDir, command: 'serve', flags, env });
  try {
    const target = {
      peers: 'bare' as const,
      url: server.url,
      token,
      destination: `${receiver.url}/`,
    };
    await receiver.expect(warmUpMessages);
    await publishAll(target, warmUpMessages);
    await receiver.complete(60_000);
    await receiver.expect(seconds * PER_SECOND_MAX);
    const other = await startOtherProject(server.url, otherToken);
    let earlyMebibytes = 0;
    setTimeout(() => {
      earlyMebibytes = residentMebibytes(server.pid);
    }, 333 * seconds).unref();
    const cpuBefore = cpuSeconds(server.pid);
    const published = await publishFor(target, connections, seconds);
    const { distinct } = await receiver.report();
    const cores = (cpuSeconds(server.pid) - cpuBefore) / seconds;
    const lateMebibytes = residentMebibytes(server.pid);
    return { published, delivered: distinct, other: await other.end(), cores, earlyMebibytes, lateMebibytes };
  } finally {
    await server.end('SIGKILL'); // delivering the rest would take longer than the round
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function startOtherProject(url: string, token: string): Promise<{ end(): Promise<OtherProject> }> {
  const child = fork(OTHER_PROJECT, [url, token], { serialization: 'advanced' });
  await once(child, 'message');
  return {
    async end() {
      const message = once(child, 'message') as Promise<[OtherProject]>;
      const exited = once(child, 'exit');
      child.send('end');
      const [figures] = await message;
      await exited;
      return figures;
    },
  };
}
