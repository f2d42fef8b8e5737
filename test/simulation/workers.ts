/** Injects the faults of several workers that share a database, and checks that the workers have recovered. */
import type { Millis } from '../../src/engine/model.ts';
import type { SeededRandom } from '../support/seeded-random.ts';
import type { World } from './world.ts';

const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;
/** Longer than the heartbeat timeout of a worker. */
const FREEZE_MS_MAX: Millis = 40 * SECOND_MS;
/** Long enough to send a full backlog under the smallest limits. */
export const RECOVERY_MS: Millis = 60 * SECOND_MS;

/** Draws the faults of transactions; returns a function that may stop a worker, to be called at each step. */
export function disturbWorkers(world: World, random: SeededRandom): () => void {
  const freezePerStep = random.choose([0, 0.03, 0.1]);
  Object.assign(world.faults, {
    rejection: random.choose([0, 0.01]),
    lostResponse: random.choose([0, 0.02, 0.05]),
    hang: random.choose([0, 0.01]),
  });
  return () => {
    if (random.chance(freezePerStep)) world.freeze(random.int(500, FREEZE_MS_MAX));
  };
}

/**
 * P7: no claim is unknown to all workers, and no backlog is forgotten. Checked twice, to ignore messages that are just being
 * settled or claimed.
 */
export async function checkUnknownClaims(world: World): Promise<void> {
  await world.clock.advanceBy(RECOVERY_MS);
  const before = new Set((await unknownClaims(world)).map(({ key }) => key));
  await world.clock.advanceBy(RECOVERY_MS);
  for (const { key, id, isClaimed } of await unknownClaims(world)) {
    if (!before.has(key)) continue;
    world.violate('P7', isClaimed ? 'claimed, and no worker knows of it' : 'in a line that no worker reads', id);
  }
}

async function unknownClaims(world: World): Promise<{ key: string; id: string; isClaimed: boolean }[]> {
  const rows = await world.queryAll<{ claim_token: number | null; id: string }>(
    `select m.claim_token, c.id from messages m join contents c on c.key = m.key
     where m.claim_token is not null or m.wait_state = 1`,
  );
  const running = world.runningTokens;
  return rows
    .filter(({ claim_token }) => claim_token === null || !running.has(claim_token))
    .map(({ claim_token, id }) => ({ key: `${id} ${claim_token}`, id, isClaimed: claim_token !== null }));
}

/** Restarts all workers with rare heartbeats, so that days can be simulated quickly. */
export async function restartAll(world: World): Promise<void> {
  world.workerTimeoutMs = HOUR_MS;
  world.crashAll('so that time passes quickly');
  await world.clock.runUntil(() => world.isUp, 60 * SECOND_MS);
}
