/** Injects moves and faults of several cells. */
import type { SeededRandom } from '../../support/seeded-random.ts';
import type { Workload } from '../workload.ts';
import type { World } from '../world.ts';
import type { Movers } from './movers.ts';

const AWAY_MS_MAX = 30_000;
const MINUTE_MS = 60_000;

/** Draws probabilities; returns a function to be called at each step. */
export function disturbCells(
  world: World,
  movers: Movers,
  random: SeededRandom,
  workload?: Pick<Workload, 'publishForOther' | 'findAccepted'>,
): () => void {
  const movesPerStep = random.choose([0.05, 0.1, 0.2]);
  const awayPerStep = random.choose([0, 0.01, 0.03]);
  return () => {
    if (random.chance(movesPerStep)) void movers.step();
    if (random.chance(awayPerStep)) world.makeUnreachable(random.int(500, AWAY_MS_MAX));
    if (random.chance(0.3)) void workload?.publishForOther();
    if (random.chance(0.5)) void workload?.findAccepted();
  };
}

/** Ends all moves in the healed world. */
export async function endMoves(world: World, movers: Movers): Promise<void> {
  for (let tries = 0; tries < 10; tries += 1) {
    await world.clock.advanceBy(MINUTE_MS); // until moves in progress have ended
    if (await movers.areDone()) return;
    void movers.finish();
  }
  world.violate('P2', 'a move never ends');
}
