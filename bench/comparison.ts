/** Compares Waypost with the null relay in alternating rounds, so that a slow phase of the machine affects both; reports medians. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type ListeningProcess, startListening } from './child-process.ts';
import type { LoadTarget, Peers } from './load.ts';
import { type Measurement, measure, type Workload } from './measure.ts';
import { buildSlowFsync } from './preload/build.ts';
import { type Receiver, startReceiver } from './receiver-process.ts';
import { median } from './statistics.ts';
import { DEVELOPMENT_TOKEN, startWaypost } from './waypost-process.ts';

export interface Comparison {
  peers: Peers;
  relay: Measurement;
  waypost: Measurement;
  /** Waypost's figure divided by the relay's. */
  ratio: Omit<Measurement, 'missing' | 'repeated'>;
  rounds: number;
  fsyncDelayMs: number;
}

export interface ComparisonOptions {
  peers: Peers;
  rounds: number;
  workload: Workload;
  /** Added to each fsync of Waypost; the relay has no fsync. */
  fsyncDelayMs: number;
  onRound?: (name: 'relay' | 'waypost', round: number, measured: Measurement) => void;
}

const RELAY = fileURLToPath(new URL('./null-relay.ts', import.meta.url));

export async function compare(options: ComparisonOptions): Promise<Comparison> {
  const receiver = await startReceiver(options.peers);
  const measured = { relay: [] as Measurement[], waypost: [] as Measurement[] };
  try {
    for (let round = 1; round <= options.rounds; round += 1) {
      for (const name of ['relay', 'waypost'] as const) {
        const result = name === 'relay' ? await runRelay(receiver, options) : await runWaypost(receiver, options);
        measured[name].push(result);
        options.onRound?.(name, round, result);
      }
    }
  } finally {
    await receiver.end();
  }
  const relay = medians(measured.relay);
  const waypost = medians(measured.waypost);
  const { missing: _missing, repeated: _repeated, ...ratio } = combine(relay, (name) => waypost[name] / relay[name]);
  return {
    relay,
    waypost,
    ratio,
    peers: options.peers,
    rounds: options.rounds,
    fsyncDelayMs: options.fsyncDelayMs,
  };
}

async function runRelay(receiver: Receiver, options: ComparisonOptions): Promise<Measurement> {
  return measureAndEnd(await startListening([RELAY]), receiver, options);
}

async function runWaypost(receiver: Receiver, options: ComparisonOptions): Promise<Measurement> {
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-bench-'));
  const shim = options.fsyncDelayMs > 0 ? buildSlowFsync(options.fsyncDelayMs) : undefined;
  try {
    const server = await startWaypost({ dataDir, env: shim?.env ?? {} });
    return await measureAndEnd(server, receiver, options);
  } finally {
    shim?.remove();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

async function measureAndEnd(
  server: ListeningProcess,
  receiver: Receiver,
  { peers, workload }: ComparisonOptions,
): Promise<Measurement> {
  try {
    const target: LoadTarget = { peers, url: server.url, token: DEVELOPMENT_TOKEN, destination: `${receiver.url}/` };
    return await measure(server, receiver, target, workload);
  } finally {
    await server.end('SIGTERM');
  }
}

/** `missing` and `repeated` are summed, since a single lost message matters. */
function medians(rounds: Measurement[]): Measurement {
  const first = rounds[0];
  if (first === undefined) throw new Error('a comparison needs at least one round');
  return combine(first, (name) => {
    const values = rounds.map((round) => round[name]);
    return name === 'missing' || name === 'repeated' ? values.reduce((sum, value) => sum + value, 0) : median(values);
  });
}

function combine(shape: Measurement, value: (name: keyof Measurement) => number): Measurement {
  const names = Object.keys(shape) as (keyof Measurement)[];
  return Object.fromEntries(names.map((name) => [name, value(name)])) as unknown as Measurement;
}
