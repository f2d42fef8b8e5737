/**
 * The store of a cell as its engine sees it. If a project moved during an attempt, the claim moved along: the attempt's
 * reads and its outcome go to the cell in which the project lives now.
 */

import type { Change, ProjectId, Settlement } from '../../engine/model.ts';
import { ProjectAway } from '../../engine/store-errors.ts';
import type { Store } from '../../store/store.ts';

/** Does it in the store of the cell in which the project lives. Throws `StoreUnavailable`. */
export type InCellOf = <T>(projectId: ProjectId, work: (store: Store) => Promise<T>) => Promise<T>;

export function followed(store: Store, inCellOf: InCellOf): Store {
  const follow = async <T>(work: (store: Store) => Promise<T>): Promise<T> => {
    try {
      return await work(store);
    } catch (error) {
      if (!(error instanceof ProjectAway && error.isGone)) throw error;
      return inCellOf(error.projectId, work);
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
 * In another cell nothing goes out by the slots of this one, neither the next of a lane nor what follows: this engine begins only
 * what its own cell has given it.
 */
function withoutClaims(settlement: Settlement): Settlement {
  const { change, changeIfCancelRequested } = settlement;
  return {
    ...settlement,
    change: withFollowsDue(change),
    ...(changeIfCancelRequested && { changeIfCancelRequested: withFollowsDue(changeIfCancelRequested) }),
  };
}

function withFollowsDue(change: Change): Change {
  if (!change.follows) return change;
  const follows = change.follows.map((follow): typeof follow => ({
    ...follow,
    state: { kind: 'due', dueAtMs: follow.message.notBeforeMs },
  }));
  return { ...change, follows };
}
