/**
 * Simulates an outage of the database. Afterwards ten projects have a backlog of due messages, and a project without a
 * backlog needs more than an equal share of a slow database. The project without a backlog must not wait for the backlogs
 * of the others (decision 038).
 */
import { SeededRandom } from '../support/seeded-random.ts';
import { openDatabase } from './database.ts';
import { command, ISOLATED, publish } from './isolation.ts';
import { type Sabotage, type Violation, World } from './world.ts';

const BEHIND = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10];
const FRESH = 11;
/** The number of due messages of each project with a backlog. */
const BACKLOG = 400;
const OUTAGE_MS = 60_000;
const COMMIT_MS_MAX = 100;
/** All bursts together are more than an equal share of the messages that can be claimed, and less than half of them. */
const BURSTS = 12;
const BURST = 40;
const BURST_EVERY_MS = 200;
/** The delay of the messages of a burst, so that they are claimed instead of being sent directly after the publish. */
const DELAY_MS = 400;
/** Nine of ten messages are sent within this time after they are due. Equal shares would take at least twice as long. */
const PROMPT_MS = 2_000;

const SETTINGS = { ...ISOLATED, inFlightMax: 1_000, inFlightPerOriginMax: 500 };

/** Simulates the outage with `seed`; resolves to the broken promises. */
export async function simulateOutage(seed: number, sabotage: Sabotage = {}): Promise<Violation[]> {
  const random = new SeededRandom(seed);
  const driver = await openDatabase();
  const world = new World({ random, drivers: [driver], settings: SETTINGS, sabotage });
  const { clock, network } = world;
  try {
    void world.start();
    await clock.runUntil(() => world.engine !== undefined, 10_000);
    for (const project of [...BEHIND, FRESH]) {
      for (const origin of originsOf(project)) {
        network.setEndpoint(origin, () => ({ kind: 'answer', status: 200, afterMs: 5 }));
      }
    }
    const messages = (project: number, count: number, delayMs: () => number) =>
      Array.from({ length: count }, () => command(random.choose(originsOf(project)), { delayMs: delayMs() }));
    for (const project of BEHIND) {
      await publish(
        world,
        project,
        messages(project, BACKLOG, () => random.int(1_000, OUTAGE_MS)),
      );
    }
    await publish(
      world,
      FRESH,
      messages(FRESH, 16, () => 0),
    ); // makes the endpoints of this project healthy
    world.makeUnavailable(OUTAGE_MS);
    await clock.advanceBy(OUTAGE_MS);

    world.faults = { ...world.faults, commitMsMax: COMMIT_MS_MAX };
    const dueAtMs = new Map<string, number>();
    for (let nth = 0; nth < BURSTS; nth += 1) {
      const burstDueAtMs = clock.elapsedMs + DELAY_MS;
      void publish(
        world,
        FRESH,
        messages(FRESH, BURST, () => DELAY_MS),
      ).then((ids) => {
        for (const id of ids) dueAtMs.set(id, burstDueAtMs);
      });
      await clock.advanceBy(BURST_EVERY_MS);
    }
    await clock.advanceBy(60_000);
    checkFresh(world, dueAtMs);
    return world.violations;
  } finally {
    world.crashAll('the end');
    await driver.close();
  }
}

function originsOf(project: number): string[] {
  return Array.from({ length: 2 }, (_, nth) => `https://${nth}.project-${project}.example`);
}

function checkFresh(world: World, dueAtMs: ReadonlyMap<string, number>): void {
  const missing = new Set(dueAtMs.keys());
  const lateMs: number[] = [];
  for (const attempt of world.network.attempts) {
    if (!missing.delete(attempt.messageId)) continue;
    lateMs.push((world.startOf.get(attempt)?.atMs ?? Infinity) - (dueAtMs.get(attempt.messageId) ?? 0));
  }
  if (dueAtMs.size < BURSTS * BURST || missing.size > 0) world.violate('P1', `${missing.size} messages never went out`);
  const late = lateMs.filter((ms) => ms > PROMPT_MS);
  if (late.length > lateMs.length / 10) {
    world.violate(
      'P9',
      `${late.length} of ${lateMs.length} went out ${Math.min(...late)} to ${Math.max(...late)} ms late`,
    );
  }
}
