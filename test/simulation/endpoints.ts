/** The endpoints of the simulated world, which change their behavior at random. */
import type { SeededRandom } from '../support/seeded-random.ts';
import type { SimulatedClock } from '../support/simulated-clock.ts';
import type { Endpoint, Reply } from '../support/simulated-network.ts';

/** Always responds quickly. Other endpoints must not delay it (P9). */
export const HEALTHY_ORIGIN = 'https://healthy.example';
/** The endpoint of all projects other than `PROJECT`. */
export const OTHERS_ORIGIN = 'https://others.example';
export const MOODY_ORIGINS = [1, 2, 3, 4, 5].map((number) => `https://moody-${number}.example`);

export function healthy(random: SeededRandom): Endpoint {
  return () => ({ kind: 'answer', status: random.choose([200, 201, 204, 299]), afterMs: random.int(1, 40) });
}

/** The behavior of an endpoint until its mood changes. */
const MOODS = {
  fine: (random) => () => ({ kind: 'answer', status: 200, afterMs: random.int(1, 200) }),
  slow: (random) => () => ({ kind: 'answer', status: 200, afterMs: random.int(1_000, 40_000) }),
  silent: () => () => ({ kind: 'silence' }),
  broken: (random) => () => failure(random),
  mixed: (random) => () =>
    random.chance(0.6) ? { kind: 'answer', status: 200, afterMs: random.int(1, 500) } : failure(random),
  resetting: (random) => () => ({ kind: 'reset', afterMs: random.int(0, 100) }),
  flapping: (random, clock) => {
    const periodMs = random.int(1_000, 30_000);
    return () =>
      Math.floor(clock.elapsedMs / periodMs) % 2 === 0
        ? { kind: 'answer', status: 200, afterMs: random.int(1, 100) }
        : failure(random);
  },
} satisfies Record<string, (random: SeededRandom, clock: SimulatedClock) => Endpoint>;

/** An endpoint in a random mood. */
export function moody(random: SeededRandom, clock: SimulatedClock): { mood: string; endpoint: Endpoint } {
  const mood = random.choose(Object.keys(MOODS) as (keyof typeof MOODS)[]);
  return { mood, endpoint: MOODS[mood](random.fork(), clock) };
}

function failure(random: SeededRandom): Reply {
  const afterMs = random.int(1, 2_000);
  switch (random.int(0, 7)) {
    case 0:
      return { kind: 'answer', status: 429, afterMs, header: { 'Retry-After': [String(random.int(0, 30))] } };
    case 1:
      return { kind: 'answer', status: 503, afterMs, header: { 'X-Ratelimit-Reset': [`${random.int(1, 90)}s`] } };
    case 2:
      return { kind: 'answer', status: 489, afterMs, header: { 'Upstash-Nonretryable-Error': ['true'] } };
    case 3:
      return { kind: 'answer', status: 489, afterMs };
    case 4:
      return { kind: 'reset', afterMs };
    case 5:
      return random.chance(0.2) ? { kind: 'unsendable' } : { kind: 'silence' };
    case 6:
      return { kind: 'answer', status: 302, afterMs, header: { Location: ['https://elsewhere.example/'] } };
    default:
      return { kind: 'answer', status: random.choose([400, 404, 500, 502]), afterMs, body: Uint8Array.of(33) };
  }
}
