/**
 * Wraps the store of a cell for the engine of that cell. If a project moves during an attempt, the claim moves along: the
 * reads and the outcome of the attempt then go to the project's new cell.
 */

import type { Change, ProjectId, Settlement } from '../../engine/model.ts';
import { ProjectAway } from '../../engine/store-errors.ts';
import type { Store } from '../../store/store.ts';

/** Calls `work` with the store of the project's current cell. Throws `StoreUnavailable`. */
export type WithCellOf = <T>(projectId: ProjectId, work: (store: Store) => Promise<T>) => Promise<T>;

export function followMoves(store: Store, withCellOf: WithCellOf): Store {
  const follow = async <T>(work: (store: Store) => Promise<T>): Promise<T> => {
    try {
      return await work(store);
    } catch (error) {
      if (!(error instanceof ProjectAway && error.isGone)) throw error;
      return withCellOf(error.projectId, work);
    }
  };
  const { messages, runs } = store;
  const parts = {
    messages: {
      ...messages,
      settle: ({ handoff, ...args }) =>
        follow((own) =>
          own === store
            ? own.messages.settle({ ...args, handoff })
            : own.messages.settle({ ...args, settlement: withoutClaims(args.settlement) }),
        ),
      release: async ({ claims, nowMs }) => {
        const byProject = Map.groupBy(claims, ({ projectId }) => projectId);
        await Promise.all(
          [...byProject.values()].map((each) => follow((own) => own.messages.release({ claims: each, nowMs }))),
        );
      },
    } satisfies Store['messages'],
    runs: {
      ...runs,
      findRun: (args) => follow((own) => own.runs.findRun(args)),
      findRecords: (args) => follow((own) => own.runs.findRecords(args)),
      readJournal: (args) => follow((own) => own.runs.readJournal(args)),
    } satisfies Store['runs'],
    minutes: {
      ...store.minutes,
      addMinutes: (args) => follow((own) => own.minutes.addMinutes(args)),
    } satisfies Store['minutes'],
  };
  return new Proxy(store, {
    get: (target, name) => {
      if (name in parts) return parts[name as keyof typeof parts];
      const member: unknown = Reflect.get(target, name);
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
}

/**
 * Another cell must claim nothing for the slots of this engine, neither the next message of a lane nor follow-up
 * messages: the engine starts only messages that are in its own cell.
 */
function withoutClaims(settlement: Settlement): Settlement {
  const { change, changeIfCancelRequested } = settlement;
  return {
    ...settlement,
    change: withDueFollowUps(change),
    ...(changeIfCancelRequested && { changeIfCancelRequested: withDueFollowUps(changeIfCancelRequested) }),
  };
}

/** The follow-up messages become due instead of claimed, so that any worker of the new cell can claim these messages. */
function withDueFollowUps(change: Change): Change {
  if (!change.follows) return change;
  const follows = change.follows.map((follow): typeof follow => ({
    ...follow,
    state: { kind: 'due', dueAtMs: follow.message.notBeforeMs },
  }));
  return { ...change, follows };
}
