/**
 * Triggers schedules when they are due. One transaction saves the messages and sets the schedule to its next time, only if the
 * schedule has not changed since it was read. So the messages of each time are made once, despite crashes and with any number of
 * workers.
 */

import { ApiError } from '../../protocol/errors.ts';
import type { EngineContext } from '../context.ts';
import { DueLoop } from '../loops/due-loop.ts';
import { acceptContextOf, type Draft, draftOf } from '../messages/accept.ts';
import type { Saved } from '../messages/accepted.ts';
import type { PublishCommand } from '../messages/publish-command.ts';
import type { UrlGroup } from '../messages/url-groups.ts';
import type { Millis, NewMessage, ProjectId } from '../model.ts';
import { byTheWall } from '../workers/steady-clock.ts';
import {
  firstTimeOf,
  neverAgain,
  publishesOf,
  type Schedule,
  type ScheduleChange,
  type ScheduleState,
  SET_BACK_MS_MAX,
  type Trigger,
  triggerOf,
} from './schedules.ts';
import type { DueSchedule } from './store.ts';

/** Schedules read together, and the bytes of their bodies. */
const PIECE = { limit: 200, bytesMax: 4 * 1024 * 1024 };
/** Messages saved in one transaction, and their bytes, unless a single trigger has more. Larger transactions delay publishes. */
const SAVED_TOGETHER = { messages: 200, bytes: 4 * 1024 * 1024 };
/** The limits of a single trigger of a URL group, the same as for one publish to the group. */
const TRIGGER_MAX = { messages: 10_000, bytes: 100 * 1024 * 1024 };

/** The decision for one due schedule: its next times, and the messages of its triggers. */
interface Step {
  schedule: Schedule;
  trigger: Trigger;
  commands: PublishCommand[];
  error?: string;
}

/** The loop must be notified of the next time of each schedule that is saved (`noteNext`). */
export function scheduleLoop(context: EngineContext): DueLoop {
  const { clock, log } = context;
  const triggers = new Triggers(context);
  const byWall = { clock: byTheWall(clock), log };
  const loop = new DueLoop(byWall, 'schedules_failed', () => triggers.doBatch(), 'upkeep');
  clock.onJump((byMs) => {
    triggers.mayBeStranded ||= byMs < 0;
    loop.noteNext(clock.wallMs());
  });
  return loop;
}

class Triggers {
  readonly #context: EngineContext;
  /** Whether the wall clock was set back, or may have been set back before the start. */
  mayBeStranded = true;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  async doBatch(): Promise<'more' | Millis> {
    const { store, clock } = this.#context;
    if (this.mayBeStranded) await this.#recoverStranded();
    const { due, nextAtMs = Infinity } = await store.schedules.dueSchedules({ nowMs: clock.wallMs(), ...PIECE });
    if (due.length === 0) return nextAtMs;
    const groups = await this.#groupsOf(due);
    for (const steps of together(due.map((one) => this.#stepOf(one, groups)))) await this.#take(steps);
    return 'more';
  }

  /** Resets schedules that were triggered while the clock was far ahead: they would wait until it shows that time again. */
  async #recoverStranded(): Promise<void> {
    const { store, clock, numbers } = this.#context;
    this.mayBeStranded = false;
    try {
      while (true) {
        const nowMs = clock.wallMs();
        const stranded = await store.schedules.strandedSchedules({ passedAfterMs: nowMs + SET_BACK_MS_MAX, ...PIECE });
        if (stranded.length === 0) break;
        const firstVersion = await numbers.take(stranded.length);
        const changes = stranded.map((schedule, index) => recoveredAt(schedule, firstVersion + index, nowMs));
        await store.schedules.changeSchedules({ changes, nowMs: clock.nowMs() });
      }
    } catch (error) {
      this.mayBeStranded = true;
      throw error;
    }
  }

  /** The current URL groups that the schedules name, without missing ones. */
  async #groupsOf(due: readonly DueSchedule[]): Promise<Map<string, UrlGroup>> {
    const groups = new Map<string, UrlGroup>();
    for (const { schedule } of due) {
      const { destination } = schedule.plan;
      if (destination.kind !== 'group' || groups.has(groupKey(schedule.projectId, destination.name))) continue;
      const group = await this.#context.store.urlGroups.findUrlGroup({
        projectId: schedule.projectId,
        name: destination.name,
      });
      if (group) groups.set(groupKey(schedule.projectId, destination.name), group);
    }
    return groups;
  }

  #stepOf({ schedule, isBusy }: DueSchedule, groups: ReadonlyMap<string, UrlGroup>): Step {
    const nowMs = this.#context.clock.wallMs();
    const { destination, body } = schedule.plan;
    const group = destination.kind === 'group' ? groups.get(groupKey(schedule.projectId, destination.name)) : undefined;
    const once = orError(() => withinLimits(publishesOf(schedule, group, nowMs), schedule));
    const messages = once.made?.length ?? 0;
    const timesMax = Math.min(
      Math.floor(SAVED_TOGETHER.messages / Math.max(1, messages)),
      Math.floor(SAVED_TOGETHER.bytes / Math.max(1, messages * body.length)),
    );
    const decided = orError(() => triggerOf(schedule, { isBusy, nowMs, timesMax: Math.max(1, timesMax) }));
    if (decided.made === undefined) {
      return { schedule, trigger: neverAgain(nowMs), commands: [], error: decided.error };
    }
    const trigger = decided.made;
    const commands = Array.from({ length: trigger.times }, () => once.made ?? []).flat();
    const isTriedInVain = once.made === undefined && trigger.times > 0;
    return isTriedInVain ? { schedule, trigger, commands, error: once.error } : { schedule, trigger, commands };
  }

  async #take(steps: Step[]): Promise<void> {
    const { store, clock, numbers, dispatcher, metrics, operatorEvents } = this.#context;
    const count = steps.reduce((sum, { commands }) => sum + commands.length, 0);
    const firstKey = await numbers.take(count + steps.length);
    const wallMs = clock.wallMs();
    let isTold = false;
    const save = (placed: NewMessage[]) => {
      const changes = changesOf(steps, { placed, firstKey, firstVersion: firstKey + count, wallMs });
      for (const [index, { schedule, error }] of steps.entries()) {
        const lagMs = wallMs - schedule.state.nextAtMs;
        const fact = operatorEvents?.factOf(schedule, {
          key: firstKey + count + index,
          lagMs,
          hasFailed: error !== undefined,
        });
        if (fact) Object.assign(changes[index] ?? {}, { fact });
      }
      isTold = changes.some(({ fact }) => fact !== undefined);
      return store.schedules.changeSchedules({ changes, nowMs: clock.nowMs() });
    };
    await dispatcher.intake.save(this.#draftsOf(steps, firstKey), save, (answers) => savedOf(answers, steps));
    if (isTold) operatorEvents?.noteSaved();
    for (const { schedule, trigger } of steps) {
      if (trigger.times > 0) metrics?.triggered(clock.wallMs() - schedule.state.nextAtMs);
    }
  }

  #draftsOf(steps: readonly Step[], firstKey: number): Draft[] {
    const commands = steps.flatMap((step) => step.commands.map((command) => ({ command, step })));
    return commands.map(({ command, step }, index) =>
      draftOf(command, firstKey + index, acceptContextOf(this.#context, step.schedule.projectId)),
    );
  }
}

/** Each schedule's next state, with its messages from `placed`, whose keys start at `firstKey`. */
function changesOf(
  steps: readonly Step[],
  saved: { placed: readonly NewMessage[]; firstKey: number; firstVersion: number; wallMs: Millis },
): ScheduleChange[] {
  let taken = 0;
  return steps.map(({ schedule, trigger, commands, error }, index) => {
    const { key, state } = schedule;
    const next: ScheduleState = {
      ...state,
      version: saved.firstVersion + index,
      nextAtMs: trigger.nextAtMs,
      passedUntilMs: trigger.passedUntilMs,
    };
    if (trigger.times > 0) {
      const messages = commands.length / trigger.times;
      const firstKey = saved.firstKey + taken + commands.length - messages;
      next.lastTrigger = { atMs: saved.wallMs, firstKey, messages };
      delete next.error;
    }
    if (error !== undefined) next.error = error;
    const messages = saved.placed.slice(taken, taken + commands.length);
    taken += commands.length;
    return { key, fromVersion: state.version, state: next, messages };
  });
}

/** How the messages of each step were saved; `undefined` for those of a schedule that had changed since it was read. */
function savedOf(answers: readonly (Saved[] | 'stale')[], steps: readonly Step[]): (Saved | undefined)[] {
  return answers.flatMap((answer, index) =>
    answer === 'stale' ? (steps[index]?.commands ?? []).map(() => undefined) : answer,
  );
}

function recoveredAt(schedule: Schedule, version: number, nowMs: Millis): ScheduleChange {
  const { passedUntilMs: _, ...rest } = schedule.state;
  const { made: nextAtMs = neverAgain(nowMs).nextAtMs, ...failure } = orError(() =>
    firstTimeOf(schedule.plan.cron, undefined, nowMs),
  );
  const state: ScheduleState = { ...rest, ...failure, version, nextAtMs };
  return { key: schedule.key, fromVersion: schedule.state.version, state, messages: [] };
}

/** The result of `make`, or its error. The schedule shows the error, since no client waits for a response. */
function orError<T>(make: () => T): { made: T } | { made: undefined; error: string } {
  try {
    return { made: make() };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { made: undefined, error: error.message };
  }
}

function withinLimits(commands: PublishCommand[], { plan }: Schedule): PublishCommand[] {
  const { messages, bytes } = TRIGGER_MAX;
  if (commands.length <= messages && commands.length * plan.body.length <= Math.max(bytes, plan.body.length)) {
    return commands;
  }
  throw new ApiError(
    'invalid_request',
    `a trigger may make at most ${messages} messages with ${bytes} bytes of bodies`,
  );
}

/** Splits `steps` into batches within `SAVED_TOGETHER`. */
function* together(steps: readonly Step[]): Generator<Step[]> {
  let batch: Step[] = [];
  let messages = 0;
  let bytes = 0;
  for (const step of steps) {
    const { length } = step.commands;
    const size = length * step.schedule.plan.body.length;
    if (batch.length > 0 && (messages + length > SAVED_TOGETHER.messages || bytes + size > SAVED_TOGETHER.bytes)) {
      yield batch;
      batch = [];
      messages = 0;
      bytes = 0;
    }
    batch.push(step);
    messages += length;
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}

function groupKey(projectId: ProjectId, name: string): string {
  return `${projectId} ${name}`;
}
