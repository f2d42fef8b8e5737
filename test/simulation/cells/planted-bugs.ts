/** Bugs that cells and moves can have, so that a test can prove that the simulation finds each. */

import type { MoveProjectOptions } from '../../../src/cells/move/move-project.ts';
import { ProjectAway } from '../../../src/engine/store-errors.ts';
import type { Driver } from '../../../src/store/driver.ts';
import type { Store } from '../../../src/store/store.ts';
import type { StoreMethods } from '../../support/altered-store.ts';
import { altered, type PlantedBug } from '../planted-bugs.ts';

export const CELL_BUGS: Record<string, PlantedBug> = {
  'a batch commits after the copy': {
    promise: 'P1',
    seed: 2,
    sabotage: () => altered(() => ({ guardProjects: () => {} })),
  },
  'the directory is switched before the copy is complete': {
    promise: 'P2',
    seed: 3,
    sabotage: () => ({ moves: switchingEarly }),
  },
  'messages are claimed in the cell that a project is leaving': {
    promise: 'P2',
    seed: 53,
    sabotage: () => altered(claimingWithoutFence),
  },
  'a cell assigns the numbers of the next cell': { promise: 'P3', sabotage: () => ({ cell: numberingAsTheNext }) },
  'the outcome of an attempt does not follow its project': {
    promise: 'P7',
    seed: 5,
    sabotage: () => altered(notFollowing),
  },
  'a heartbeat finds projects that have moved away': {
    promise: 'P4',
    seed: 120,
    steps: 160,
    sabotage: () => altered(findingAll),
  },
  'a project stays paused after its move was killed': {
    promise: 'P9',
    seed: 175,
    sabotage: () => ({ leavesPauses: true }),
  },
  'a project is read in the cell that it has left': {
    promise: 'P3',
    seed: 2,
    sabotage: () => altered(readingWithoutFence),
  },
};

/** Bugs that the simulation of workflows must find. */
export const CELL_RUN_BUGS: Record<string, PlantedBug> = {
  'a run is read in the cell that it has left': {
    promise: 'P14',
    seed: 3,
    sabotage: () => altered(readingRunsWithoutFence),
  },
};

function switchingEarly(options: MoveProjectOptions): MoveProjectOptions {
  const { directory } = options;
  return {
    ...options,
    directory: {
      ...directory,
      setMovePhase: async (args) => {
        await directory.setMovePhase(args);
        if (args.phase === 'paused') await directory.switchMove(args);
      },
      switchMove: async () => true,
    },
  };
}

function claimingWithoutFence(_: Store, unguarded: () => Store): Partial<StoreMethods> {
  const store = unguarded();
  return { claim: (args) => store.messages.claim(args) };
}

function readingWithoutFence(_: Store, unguarded: () => Store): Partial<StoreMethods> {
  const store = unguarded();
  return { listLogs: (args) => store.logs.listLogs(args) };
}

function readingRunsWithoutFence(_: Store, unguarded: () => Store): Partial<StoreMethods> {
  const { runs } = unguarded();
  return {
    readJournal: (args) => runs.readJournal(args),
    findRun: (args) => runs.findRun(args),
    findRecords: (args) => runs.findRecords(args),
  };
}

async function numberingAsTheNext(driver: Driver): Promise<void> {
  await driver.transaction((tx) =>
    tx.send("update numbers set next = until + 1, until = until + until where name = 'keys and tokens'"),
  );
}

function findingAll(store: Store): Partial<StoreMethods> {
  return {
    heartbeat: async (args) => ({ ...(await store.workers.heartbeat(args)), here: args.projects ?? [] }),
  };
}

/** Treats the project as still moving, so that the settle is retried in the old cell. */
function notFollowing(store: Store): Partial<StoreMethods> {
  return {
    settle: async ({ settlement, nowMs, handoff }) => {
      try {
        return await store.messages.settle({ settlement, nowMs, handoff });
      } catch (error) {
        throw error instanceof ProjectAway ? new ProjectAway(error.projectId, false) : error;
      }
    },
  };
}
