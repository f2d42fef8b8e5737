/** Bugs that several workers on one database can have, so that a test can prove that the simulation finds each. */

import { DatabaseClock } from '../../src/engine/workers/database-clock.ts';
import type { HeartbeatResponse } from '../../src/engine/workers/store.ts';
import type { Store } from '../../src/store/store.ts';
import type { StoreMethods } from '../support/altered-store.ts';
import { altered, PLANTED_BUGS, type PlantedBug } from './planted-bugs.ts';
import { SCHEDULE_BUGS } from './schedule-planted-bugs.ts';

export const WORKER_BUGS: Record<string, PlantedBug> = {
  'a settle of a worker that was stopped does not check the claim token': {
    promise: 'P6',
    seed: 20,
    sabotage: PLANTED_BUGS['a settle does not check the claim token']?.sabotage ?? (() => ({})),
  },
  'the claims of dead workers are not released': { promise: 'P7', sabotage: () => altered(withoutRescue) },
  'a claim remains when its response was lost': {
    promise: 'P7',
    seed: 12,
    sabotage: () => altered(withoutReconciliation),
  },
  'each worker uses the clock of its machine': {
    promise: 'P4',
    seed: 7,
    sabotage: () => ({ clock: (machine) => new UncorrectedClock(machine) }),
  },
  'a heartbeat counts although it got no response': {
    promise: 'P4',
    seed: 41,
    sabotage: () => altered(believingBeats),
  },
  'a schedule is triggered by two workers': {
    promise: 'P16',
    sabotage: SCHEDULE_BUGS['a schedule advances regardless of its version']?.sabotage ?? (() => ({})),
  },
};

/** Bugs that the simulation of workflows must find. */
export const WORKER_RUN_BUGS: Record<string, PlantedBug> = {
  'single numbers come from a block of the worker': {
    promise: 'P17',
    seed: 1,
    sabotage: () => altered(inBlocks),
  },
};

function withoutRescue(): Partial<StoreMethods> {
  return { orphanedClaims: async () => [] };
}

function withoutReconciliation(): Partial<StoreMethods> {
  return { claimsOf: async () => [] };
}

class UncorrectedClock extends DatabaseClock {
  override correct(): void {}
}

/** Answers each heartbeat with an earlier response, so that the worker never becomes fenced. */
function believingBeats(store: Store): Partial<StoreMethods> {
  let last: HeartbeatResponse | undefined;
  return {
    heartbeat: async (args) => {
      const heartbeat = store.workers.heartbeat(args);
      heartbeat.then(
        (answer) => {
          last = { ...answer, hasLate: false };
        },
        () => {},
      );
      return last ?? (await heartbeat);
    },
  };
}

function inBlocks(store: Store): Partial<StoreMethods> {
  const block = { next: 0, end: 0 };
  return {
    reserveNumbers: async ({ count }) => {
      if (count > 1) return store.messages.reserveNumbers({ count });
      if (block.next === block.end) {
        block.next = await store.messages.reserveNumbers({ count: 10_000 });
        block.end = block.next + 10_000;
      }
      block.next += 1;
      return block.next - 1;
    },
  };
}
