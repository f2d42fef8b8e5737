/** Bugs that schedules have had elsewhere, inserted between the engine and its store (see `planted-bugs.ts`). */

import type { Saved } from '../../src/engine/messages/accepted.ts';
import type { UrlGroup } from '../../src/engine/messages/url-groups.ts';
import { type ScheduleChange, SET_BACK_MS_MAX } from '../../src/engine/schedules/schedules.ts';
import type { Store } from '../../src/store/store.ts';
import type { StoreMethods } from '../support/altered-store.ts';
import { altered, type PlantedBug } from './planted-bugs.ts';
import { PROJECT, type Sabotage } from './world.ts';

export const SCHEDULE_BUGS: Record<string, PlantedBug> = {
  'a schedule advances without its messages': { promise: 'P16', sabotage: () => altered(movingOnAlone) },
  'messages are created while the schedule does not advance': {
    promise: 'P16',
    sabotage: () => altered(stayingBehind),
  },
  'messages are created before the schedule advances': {
    promise: 'P16',
    seed: 8,
    steps: 150,
    sabotage: () => altered(movingOnLater),
  },
  'a schedule advances regardless of its version': {
    promise: 'P16',
    seed: 9,
    sabotage: () => altered(withoutVersions),
  },
  'a paused schedule is triggered': { promise: 'P16', seed: 6, sabotage: () => altered(withoutPause) },
  'a deleted schedule is triggered': { promise: 'P16', seed: 19, steps: 20, sabotage: () => altered(withoutDeletion) },
  'a clock that is set back repeats times': {
    promise: 'P16',
    steps: 150,
    sabotage: () => altered(forgettingPassed),
  },
  'a crash makes the schedules forget what they missed': {
    promise: 'P16',
    seed: 48,
    steps: 150,
    sabotage: () => altered(forgettingMissed),
  },
  'every missed time is caught up': {
    promise: 'P16',
    seed: 13,
    steps: 150,
    sabotage: () => altered(makingUpForEach),
  },
  'the end of the previous trigger is not checked': {
    promise: 'P16',
    seed: 26,
    steps: 150,
    sabotage: () => altered(neverBusy),
  },
  'a publish to a group uses outdated endpoints': { promise: 'P16', seed: 27, sabotage: rememberingGroups },
  'the last endpoint of a group gets nothing': {
    promise: 'P16',
    seed: 5,
    sabotage: () => altered(withoutLastEndpoint),
  },
};

/** Resets the triggered times of a schedule after any change of the clock. */
function forgettingPassed(store: Store): Partial<StoreMethods> {
  return {
    strandedSchedules: ({ passedAfterMs, ...piece }) =>
      store.schedules.strandedSchedules({ passedAfterMs: passedAfterMs - SET_BACK_MS_MAX, ...piece }),
  };
}

type Answers = (Saved[] | 'stale')[];

/** Advances schedules without saving their messages, and reports the messages as saved. */
function movingOnAlone(store: Store): Partial<StoreMethods> {
  return {
    changeSchedules: async ({ changes, nowMs }) => {
      const answers = await store.schedules.changeSchedules({
        changes: changes.map((change) => ({ ...change, messages: [] })),
        nowMs,
      });
      return answers.map((answer, index) =>
        answer === 'stale' ? answer : (changes[index]?.messages ?? []).map(({ state }) => ({ state: state.kind })),
      );
    },
  };
}

/**
 * Leaves a schedule at its current time at every other trigger. At every trigger, the schedule would be triggered
 * endlessly.
 */
function stayingBehind(store: Store): Partial<StoreMethods> {
  const stayed = new Set<number>();
  return {
    changeSchedules: async ({ changes, nowMs }) => {
      const { due } = await store.schedules.dueSchedules({ nowMs, limit: 1_000, bytesMax: 1_000_000 });
      const before = new Map(due.map(({ schedule }) => [schedule.key, schedule.state.nextAtMs]));
      const stay = (change: ScheduleChange): ScheduleChange => {
        const nextAtMs = before.get(change.key);
        if (nextAtMs === undefined || change.messages.length === 0 || stayed.delete(change.key)) return change;
        stayed.add(change.key);
        return { ...change, state: { ...change.state, nextAtMs } };
      };
      return await store.schedules.changeSchedules({ changes: changes.map(stay), nowMs });
    },
  };
}

/** Saves the messages in their own transaction. */
function movingOnLater(store: Store): Partial<StoreMethods> {
  return {
    changeSchedules: async ({ changes, nowMs }): Promise<Answers> => {
      const answers: Answers = [];
      for (const change of changes) {
        const accepted =
          change.messages.length > 0 ? await store.messages.accept({ messages: change.messages, nowMs }) : [];
        const [moved] = await store.schedules.changeSchedules({ changes: [{ ...change, messages: [] }], nowMs });
        const states = accepted.map((each): Saved => (each.kind === 'accepted' ? each : { state: 'flow' }));
        answers.push(moved === 'stale' ? 'stale' : states);
      }
      return answers;
    },
  };
}

/**
 * Ignores the version of the schedule. Also delays the trigger, so that the schedule can change between the read and the
 * write.
 */
function withoutVersions(store: Store): Partial<StoreMethods> {
  return {
    dueSchedules: async (request) => {
      const answer = await store.schedules.dueSchedules(request);
      for (let pause = 0; pause < 5; pause += 1) await store.messages.reserveNumbers({ count: 1 });
      return answer;
    },
    changeSchedules: async ({ changes, nowMs }) => {
      const views = await store.schedules.listSchedules({ projectId: PROJECT });
      const versions = new Map(views.map(({ schedule }) => [schedule.key, schedule.state.version]));
      return await store.schedules.changeSchedules({
        changes: changes.map((change) => ({ ...change, fromVersion: versions.get(change.key) ?? change.fromVersion })),
        nowMs,
      });
    },
  };
}

function withoutPause(store: Store): Partial<StoreMethods> {
  return {
    changeSchedules: ({ changes, nowMs }) =>
      store.schedules.changeSchedules({
        changes: changes.map((change) => ({ ...change, state: { ...change.state, isPaused: false } })),
        nowMs,
      }),
  };
}

/** Confirms the deletion of a schedule without deleting it. */
function withoutDeletion(): Partial<StoreMethods> {
  return { deleteSchedule: async () => {} };
}

/** Skips times that were due before the process started. */
function forgettingMissed(store: Store): Partial<StoreMethods> {
  let startedAtMs: number | undefined;
  return {
    releaseAll: (args) => {
      startedAtMs = args.nowMs;
      return store.messages.releaseAll(args);
    },
    changeSchedules: async ({ changes, nowMs }): Promise<Answers> => {
      const isStarting = startedAtMs !== undefined && nowMs < startedAtMs + 1_000;
      if (!isStarting) return await store.schedules.changeSchedules({ changes, nowMs });
      const passed = changes.map((change) => {
        const { lastTrigger: _, ...state } = change.state;
        return change.messages.length > 0 ? { ...change, state, messages: [] } : change;
      });
      const answers = await store.schedules.changeSchedules({ changes: passed, nowMs });
      return answers.map(() => 'stale');
    },
  };
}

function makingUpForEach(store: Store): Partial<StoreMethods> {
  return {
    dueSchedules: async (request) => {
      const answer = await store.schedules.dueSchedules(request);
      const due = answer.due.map(({ schedule, isBusy }) => {
        const plan = { ...schedule.plan, catchUp: 'all' as const };
        return { schedule: { ...schedule, plan }, isBusy };
      });
      return { ...answer, due };
    },
  };
}

function neverBusy(store: Store): Partial<StoreMethods> {
  return {
    dueSchedules: async (request) => {
      const answer = await store.schedules.dueSchedules(request);
      return { ...answer, due: answer.due.map(({ schedule }) => ({ schedule, isBusy: false })) };
    },
  };
}

function rememberingGroups(): Sabotage {
  const known = new Map<string, UrlGroup | undefined>();
  return altered((store) => ({
    findUrlGroup: async (args) => {
      const group = known.get(args.name) ?? (await store.urlGroups.findUrlGroup(args));
      known.set(args.name, group);
      return group;
    },
  }));
}

function withoutLastEndpoint(store: Store): Partial<StoreMethods> {
  return {
    findUrlGroup: async (args) => {
      const group = await store.urlGroups.findUrlGroup(args);
      return group && { ...group, endpoints: group.endpoints.slice(0, -1) };
    },
  };
}
