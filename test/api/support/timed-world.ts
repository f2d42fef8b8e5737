/**
 * The HTTP interface with simulated time and endpoints: the test advances the clock, and every attempt is recorded.
 *
 * The path of a destination determines its response: `https://work.example/500/2000/name` responds with 500 after 2 s. `name`
 * identifies the destination in the record.
 */
import type { ApiOptions } from '../../../src/api/app.ts';
import type { Claimed } from '../../../src/engine/model.ts';
import type { Delivery } from '../../../src/engine/ports.ts';
import type { HeaderMap } from '../../../src/protocol/options/settings.ts';
import { SeededRandom } from '../../support/seeded-random.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';
import { type Attempt, type Endpoint, SimulatedNetwork } from '../../support/simulated-network.ts';
import { openWorld, type Reply, type World } from './world.ts';

export interface TimedWorld extends World {
  clock: SimulatedClock;
  /** Every attempt so far as `name@second`, counted from the start of the test. */
  starts(): string[];
  /** The headers and body of each attempt, in the order of `starts`. */
  deliveries(): { header: HeaderMap; body: Uint8Array }[];
  /** The number of attempts in flight. */
  running(): number;
  /** The maximum number of concurrent attempts so far. */
  mostRunning(): number;
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Reply>;
  get(path: string): Promise<Reply>;
}

const ORIGINS = ['https://work.example', 'https://other.example'];

export async function openTimedWorld(changes: Partial<ApiOptions> = {}): Promise<TimedWorld> {
  const clock = new SimulatedClock();
  const startMs = clock.nowMs();
  const network = new SimulatedNetwork(clock, { travelMs: () => 0, timeoutMs: 3_600_000 });
  for (const origin of ORIGINS) network.setEndpoint(origin, respondByPath);
  let mostRunning = 0;
  network.onAttempt = () => {
    mostRunning = Math.max(mostRunning, running(network));
  };
  const sender = network.connect();
  const sent: Claimed[] = [];
  const delivery: Delivery = {
    attempt: (claimed, signal) => {
      sent.push(claimed);
      return sender.attempt(claimed, signal);
    },
    close: () => sender.close(),
  };
  const ground = { clock, randomness: new SeededRandom(1), delivery };
  const world = await openWorld(changes, ground);
  const { close } = world;
  return Object.assign(world, {
    close: () => closeInTime(close, clock),
    clock,
    starts: () => network.attempts.map(({ url, sentAtMs }) => `${nameOf(url)}@${(sentAtMs - startMs) / 1000}`),
    deliveries: () =>
      sent.map(({ message, deliveredBody }) => ({ header: message.header, body: deliveredBody ?? message.body })),
    running: () => running(network),
    mostRunning: () => mostRunning,
    post: (path: string, body: unknown = undefined, headers: Record<string, string> = {}) =>
      world.ask({ method: 'POST', url: `/v2/${path}`, headers, ...payloadOf(body) }),
    get: (path: string) => world.ask({ method: 'GET', url: `/v2/${path}` }),
  });
}

/** A destination that responds with `status` after `seconds`. */
export function to(name: string, seconds = 1, status = 200): string {
  return `${ORIGINS[0]}/${status}/${seconds * 1000}/${name}`;
}

const respondByPath: Endpoint = ({ url }) => {
  const [, status, afterMs] = new URL(url).pathname.split('/');
  return { kind: 'answer', status: Number(status), afterMs: Number(afterMs) };
};

/** Interrupting attempts takes simulated time, so the clock advances until `close` resolves. */
async function closeInTime(close: () => Promise<void>, clock: SimulatedClock): Promise<void> {
  let isClosed = false;
  const closing = close().finally(() => {
    isClosed = true;
  });
  while (!isClosed) await clock.advanceBy(1);
  await closing;
}

function nameOf(url: string): string {
  return new URL(url).pathname.split('/').at(-1) ?? '';
}

function running({ attempts }: { attempts: readonly Attempt[] }): number {
  return attempts.filter(({ outcome }) => outcome === undefined).length;
}

function payloadOf(body: unknown): { payload?: string } {
  if (body === undefined) return {};
  return { payload: typeof body === 'string' ? body : JSON.stringify(body) };
}
