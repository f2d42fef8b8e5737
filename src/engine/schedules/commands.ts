/** Creates, overwrites, pauses and resumes schedules (contract M 15.3, 15.4, 22.13, 22.17). */

import { mintScheduleId } from '../../protocol/ids.ts';
import type { MessageSettings, PublishOptions } from '../../protocol/options/settings.ts';
import type { SavedHeaders } from '../../protocol/options/trigger-options.ts';
import type { Destination } from '../../protocol/urls/destination.ts';
import type { EngineContext } from '../context.ts';
import { retryWhileStale, STALE } from '../loops/retry-while-stale.ts';
import type { Millis, ProjectId } from '../model.ts';
import { firstTimeOf, type Schedule, type SchedulePlan, type ScheduleState } from './schedules.ts';

/** A schedule that is created, or that replaces the schedule with the same id. */
export interface ScheduleCommand {
  destination: Destination;
  body: Uint8Array;
  callerIp?: string;
  /** `cron` is valid. If `scheduleId` is absent, it is generated. */
  options: PublishOptions & { cron: string };
  /** The headers that are merged with the group's headers at each trigger; only with a URL group. */
  kept?: SavedHeaders;
}

/**
 * Creates a schedule, or replaces the schedule with the same id, which keeps its pause and the state of its earlier
 * triggers.
 */
export async function createSchedule(
  context: EngineContext,
  projectId: ProjectId,
  command: ScheduleCommand,
  schedulesMax: number,
): Promise<{ scheduleId: string } | 'tooMany'> {
  const { store, clock, randomness, numbers, schedules } = context;
  const id = command.options.scheduleId ?? mintScheduleId((count) => randomness.bytes(count));
  const plan = planOf(command, id);
  return retryWhileStale('the schedule', async () => {
    const previous = command.options.scheduleId && (await store.schedules.findSchedule({ projectId, id }))?.schedule;
    const firstNumber = await numbers.take(2);
    const nowMs = clock.wallMs();
    const state = stateAfter(previous ? previous.state : undefined, plan.cron, firstNumber, nowMs);
    const schedule: Schedule = previous
      ? { ...previous, plan, state }
      : { key: firstNumber + 1, projectId, id, createdAtMs: nowMs, plan, state };
    const result = await store.schedules.saveSchedule({
      schedule,
      fromVersion: previous ? previous.state.version : undefined,
      schedulesMax,
    });
    if (result === 'tooMany') return 'tooMany';
    if (result === 'stale') return STALE;
    if (!state.isPaused) schedules.noteNext(state.nextAtMs);
    return { scheduleId: id };
  });
}

/** Pauses or resumes a schedule. Times that pass during a pause are skipped. */
export function setSchedulePaused(
  { store, clock, numbers, schedules }: EngineContext,
  projectId: ProjectId,
  id: string,
  isPaused: boolean,
): Promise<'saved' | 'missing'> {
  return retryWhileStale('the schedule', async () => {
    const schedule = (await store.schedules.findSchedule({ projectId, id }))?.schedule;
    if (!schedule) return 'missing';
    const { key, plan, state: previous } = schedule;
    if (previous.isPaused === isPaused) return 'saved';
    const version = await numbers.take(1);
    const nextAtMs = isPaused ? previous.nextAtMs : firstTimeOf(plan.cron, previous.passedUntilMs, clock.wallMs());
    const state: ScheduleState = { ...previous, version, isPaused, nextAtMs };
    const change = { key, fromVersion: previous.version, state, messages: [] };
    const [result] = await store.schedules.changeSchedules({ changes: [change], nowMs: clock.nowMs() });
    if (result === undefined || result === 'stale') return STALE;
    if (!isPaused) schedules.noteNext(nextAtMs);
    return 'saved';
  });
}

function planOf({ destination, body, callerIp, options, kept }: ScheduleCommand, scheduleId: string): SchedulePlan {
  const { cron, method, header, delayMs, scheduleQueueName, scheduleCatchUp, scheduleOverlap } = options;
  const settings: MessageSettings = { ...options.settings, scheduleId };
  if (scheduleQueueName !== undefined) settings.queueName = scheduleQueueName;
  const plan: SchedulePlan = { cron, destination, method, header, body, settings };
  if (delayMs !== undefined) plan.delayMs = delayMs;
  if (callerIp !== undefined) plan.callerIp = callerIp;
  if (scheduleCatchUp !== undefined) plan.catchUp = scheduleCatchUp;
  if (scheduleOverlap !== undefined) plan.overlap = scheduleOverlap;
  if (kept !== undefined) plan.kept = kept;
  return plan;
}

/** The state of a new or overwritten schedule, which keeps its pause and the state of its earlier triggers. */
function stateAfter(previous: ScheduleState | undefined, cron: string, version: number, nowMs: Millis): ScheduleState {
  const nextAtMs = firstTimeOf(cron, previous?.passedUntilMs, nowMs);
  return { isPaused: false, ...previous, version, nextAtMs };
}
