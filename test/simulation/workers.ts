/** What goes wrong where several workers share the database, and what must be put right before anybody starts anew. */
import type { Millis } from '../../src/engine/model.ts';
import type { SeededRandom } from '../support/seeded-random.ts';
import type { World } from './world.ts';

const SECOND_MS = 1_000;
const HOUR_MS = 3_600_000;
/** Longer than a worker may go without a heartbeat. */
const FREEZE_MS_MAX: Millis = 40 * SECOND_MS;
/** Enough for a full line of messages behind the smallest limits. */
export const RECOVERY_MS: Millis = 60 * SECOND_MS;

/** Draws what befalls the transactions of the workers; answers what, at each step, may stop one of them. */
export function disturbWorkers(world: World, random: SeededRandom): () => void {
  const freezePerStep = random.choose([0, 0.03, 0.1]);
  Object.assign(world.faults, {
    refusal: random.choose([0, 0.01]),
    lostAnswer: random.choose([0, 0.02, 0.05]),
    hang: random.choose([0, 0.01]),
  });
  return () => {
    if (random.chance(freezePerStep)) world.freeze(random.int(500, FREEZE_MS_MAX));
  };
}

/**
 * P7: no claim is left of which no worker knows, and no line that nobody reads. What is just being settled, or has its turn,
 * is gone at the second look.
 */
export async function checkLeftOver(world: World): Promise<void> {
  await world.clock.advanceBy(RECOVERY_MS);
  const before = new Set((await leftOver(world)).map(({ key }) => key));
  await world.clock.advanceBy(RECOVERY_MS);
  for (const { key, id, isClaimed } of await leftOver(world)) {
    if (!before.has(key)) continue;
    world.violate('P7', isClaimed ? 'claimed, and no worker knows of it' : 'in a line that no worker reads', id);
  }
}

async function leftOver(world: World): Promise<{ key: string; id: string; isClaimed: boolean }[]> {
  const rows = await world.look<{ claim_token: number | null; id: string }>(
    `select m.claim_token, c.id from messages m join contents c on c.key = m.key
     where m.claim_token is not null or m.wait_state = 1`,
  );
  const running = world.runningTokens;
  return rows
    .filter(({ claim_token }) => claim_token === null || !running.has(claim_token))
    .map(({ claim_token, id }) => ({ key: `${id} ${claim_token}`, id, isClaimed: claim_token !== null }));
}

/** With workers that heartbeat so seldom that days pass quickly: what is left only waits for its time. */
export async function restartAll(world: World): Promise<void> {
  world.workerTimeoutMs = HOUR_MS;
  world.crashAll('so that time passes quickly');
  await world.clock.runUntil(() => world.isUp, 60 * SECOND_MS);
}
