/**
 * Triggers schedules when they are due. One transaction saves the messages and sets the schedule to its next time, only
 * if the schedule has not changed since it was read. So the messages of each trigger are made once, despite crashes and
 * with any number of workers.
 */

import { ApiError } from '../../protocol/errors.ts';
import type { EngineContext } from '../context.ts';
import { DueLoop } from '../loops/due-loop.ts';
import { acceptContextOf, type Draft, draftOf } from '../messages/accept.ts';
import type { Saved } from '../messages/accepted.ts';
import type { PublishCommand } from '../messages/publish-command.ts';
import type { UrlGroup } from '../messages/url-groups.ts';
import type { Millis, NewMessage, ProjectId } from '../model.ts';
import { withWallTime } from '../workers/steady-clock.ts';
import {
  firstTimeOf,
  messagesOfTrigger,
  noFurtherTrigger,
  type Schedule,
  type ScheduleChange,
  type ScheduleState,
  SET_BACK_MS_MAX,
  type Trigger,
  triggerOf,
} from './schedules.ts';
import type { DueSchedule } from './store.ts';

/** The maximum of schedules that are read together, and of the bytes of their bodies. */
const READ_BATCH = { limit: 200, bytesMax: 4 * 1024 * 1024 };
/**
 * The maximum of messages and of bytes in one transaction, unless a single trigger has more. Larger transactions delay
 * publishes.
 */
const SAVE_BATCH = { messages: 200, bytes: 4 * 1024 * 1024 };
/** The limits of a single trigger of a URL group, the same as for one publish to the group. */
const TRIGGER_MAX = { messages: 10_000, bytes: 100 * 1024 * 1024 };

/** The decision for one due schedule: its next times, and the messages of its triggers. */
interface ScheduleDecision {
  schedule: Schedule;
  trigger: Trigger;
  commands: PublishCommand[];
  error?: string;
}

/** Starts the loop. The loop must be notified of the next time of each schedule that is saved (`noteNext`). */
export function scheduleLoop(context: EngineContext): DueLoop {
  const { clock, log } = context;
  const triggers = new Triggers(context);
  const wallClock = { clock: withWallTime(clock), log };
  const loop = new DueLoop(wallClock, 'schedules_failed', () => triggers.doBatch(), 'upkeep');
  clock.onJump((byMs) => {
    triggers.mayHaveStranded ||= byMs < 0;
    loop.noteNext(clock.wallMs());
  });
  return loop;
}

class Triggers {
  readonly #context: EngineContext;
  /** Whether the wall clock was set back, or may have been set back before the start. */
  mayHaveStranded = true;

  constructor(context: EngineContext) {
    this.#context = context;
  }

  async doBatch(): Promise<'more' | Millis> {
    const { store, clock } = this.#context;
    if (this.mayHaveStranded) await this.#recoverStranded();
    const { due, nextAtMs = Infinity } = await store.schedules.dueSchedules({ nowMs: clock.wallMs(), ...READ_BATCH });
    if (due.length === 0) return nextAtMs;
    const groups = await this.#groupsOf(due);
    for (const decisions of batchesOf(due.map((one) => this.#decide(one, groups)))) await this.#saveBatch(decisions);
    return 'more';
  }

  /**
   * Resets schedules that were triggered while the clock was far ahead. Otherwise such a schedule would wait until the
   * wrong time.
   */
  async #recoverStranded(): Promise<void> {
    const { store, clock, numbers } = this.#context;
    this.mayHaveStranded = false;
    try {
      while (true) {
        const nowMs = clock.wallMs();
        const stranded = await store.schedules.strandedSchedules({
          passedAfterMs: nowMs + SET_BACK_MS_MAX,
          ...READ_BATCH,
        });
        if (stranded.length === 0) break;
        const firstVersion = await numbers.take(stranded.length);
        const changes = stranded.map((schedule, index) => recoveryOf(schedule, firstVersion + index, nowMs));
        await store.schedules.changeSchedules({ changes, nowMs: clock.nowMs() });
      }
    } catch (error) {
      this.mayHaveStranded = true;
      throw error;
    }
  }

  /** The current URL groups to which the schedules publish. Missing groups are left out. */
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

  #decide({ schedule, isBusy }: DueSchedule, groups: ReadonlyMap<string, UrlGroup>): ScheduleDecision {
    const nowMs = this.#context.clock.wallMs();
    const { destination, body } = schedule.plan;
    const group = destination.kind === 'group' ? groups.get(groupKey(schedule.projectId, destination.name)) : undefined;
    const oneTrigger = catchApiError(() => withinLimits(messagesOfTrigger(schedule, group, nowMs), schedule));
    const messages = oneTrigger.made?.length ?? 0;
    const timesMax = Math.min(
      Math.floor(SAVE_BATCH.messages / Math.max(1, messages)),
      Math.floor(SAVE_BATCH.bytes / Math.max(1, messages * body.length)),
    );
    const decided = catchApiError(() => triggerOf(schedule, { isBusy, nowMs, timesMax: Math.max(1, timesMax) }));
    if (decided.made === undefined) {
      return { schedule, trigger: noFurtherTrigger(nowMs), commands: [], error: decided.error };
    }
    const trigger = decided.made;
    const commands = Array.from({ length: trigger.times }, () => oneTrigger.made ?? []).flat();
    const hasFailedTrigger = oneTrigger.made === undefined && trigger.times > 0;
    return hasFailedTrigger
      ? { schedule, trigger, commands, error: oneTrigger.error }
      : { schedule, trigger, commands };
  }

  async #saveBatch(decisions: ScheduleDecision[]): Promise<void> {
    const { store, clock, numbers, dispatcher, metrics, operatorEvents } = this.#context;
    const count = decisions.reduce((sum, { commands }) => sum + commands.length, 0);
    const firstKey = await numbers.take(count + decisions.length);
    const wallMs = clock.wallMs();
    let hasFacts = false;
    const save = (newMessages: NewMessage[]) => {
      const changes = changesOf(decisions, { newMessages, firstKey, firstVersion: firstKey + count, wallMs });
      for (const [index, { schedule, error }] of decisions.entries()) {
        const lagMs = wallMs - schedule.state.nextAtMs;
        const fact = operatorEvents?.factOf(schedule, {
          key: firstKey + count + index,
          lagMs,
          hasFailed: error !== undefined,
        });
        if (fact) Object.assign(changes[index] ?? {}, { fact });
      }
      hasFacts = changes.some(({ fact }) => fact !== undefined);
      return store.schedules.changeSchedules({ changes, nowMs: clock.nowMs() });
    };
    await dispatcher.intake.save(this.#draftsOf(decisions, firstKey), save, (results) =>
      savedMessagesOf(results, decisions),
    );
    if (hasFacts) operatorEvents?.noteSaved();
    for (const { schedule, trigger } of decisions) {
      if (trigger.times > 0) metrics?.triggered(clock.wallMs() - schedule.state.nextAtMs);
    }
  }

  #draftsOf(decisions: readonly ScheduleDecision[], firstKey: number): Draft[] {
    const commands = decisions.flatMap((decision) => decision.commands.map((command) => ({ command, decision })));
    return commands.map(({ command, decision }, index) =>
      draftOf(command, firstKey + index, acceptContextOf(this.#context, decision.schedule.projectId)),
    );
  }
}

/** Each schedule's next state, with its messages from `newMessages`, whose keys start at `firstKey`. */
function changesOf(
  decisions: readonly ScheduleDecision[],
  saved: { newMessages: readonly NewMessage[]; firstKey: number; firstVersion: number; wallMs: Millis },
): ScheduleChange[] {
  let position = 0;
  return decisions.map(({ schedule, trigger, commands, error }, index) => {
    const { key, state } = schedule;
    const next: ScheduleState = {
      ...state,
      version: saved.firstVersion + index,
      nextAtMs: trigger.nextAtMs,
      passedUntilMs: trigger.passedUntilMs,
    };
    if (trigger.times > 0) {
      const messages = commands.length / trigger.times;
      const firstKey = saved.firstKey + position + commands.length - messages;
      next.lastTrigger = { atMs: saved.wallMs, firstKey, messages };
      delete next.error;
    }
    if (error !== undefined) next.error = error;
    const messages = saved.newMessages.slice(position, position + commands.length);
    position += commands.length;
    return { key, fromVersion: state.version, state: next, messages };
  });
}

/** How each message of `decisions` was saved; undefined if the schedule of the message had changed since it was read. */
function savedMessagesOf(
  results: readonly (Saved[] | 'stale')[],
  decisions: readonly ScheduleDecision[],
): (Saved | undefined)[] {
  return results.flatMap((result, index) =>
    result === 'stale' ? (decisions[index]?.commands ?? []).map(() => undefined) : result,
  );
}

function recoveryOf(schedule: Schedule, version: number, nowMs: Millis): ScheduleChange {
  const { passedUntilMs: _, ...rest } = schedule.state;
  const { made: nextAtMs = noFurtherTrigger(nowMs).nextAtMs, ...failure } = catchApiError(() =>
    firstTimeOf(schedule.plan.cron, undefined, nowMs),
  );
  const state: ScheduleState = { ...rest, ...failure, version, nextAtMs };
  return { key: schedule.key, fromVersion: schedule.state.version, state, messages: [] };
}

/**
 * Returns the result of `make`, or the error that it throws. The schedule shows the error, since no client waits for a
 * response.
 */
function catchApiError<T>(make: () => T): { made: T } | { made: undefined; error: string } {
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

/** Splits `decisions` into batches within `SAVE_BATCH`. */
function* batchesOf(decisions: readonly ScheduleDecision[]): Generator<ScheduleDecision[]> {
  let batch: ScheduleDecision[] = [];
  let messages = 0;
  let bytes = 0;
  for (const decision of decisions) {
    const { length } = decision.commands;
    const size = length * decision.schedule.plan.body.length;
    if (batch.length > 0 && (messages + length > SAVE_BATCH.messages || bytes + size > SAVE_BATCH.bytes)) {
      yield batch;
      batch = [];
      messages = 0;
      bytes = 0;
    }
    batch.push(decision);
    messages += length;
    bytes += size;
  }
  if (batch.length > 0) yield batch;
}

function groupKey(projectId: ProjectId, name: string): string {
  return `${projectId} ${name}`;
}
