/**
 * Schedules: what is published again and again, and when (contract M 15). Everything here is pure; `loop.ts` carries it
 * out.
 */

import { ApiError } from '../../protocol/errors.ts';
import type {
  HeaderMap,
  HttpMethod,
  MessageSettings,
  ScheduleCatchUp,
  ScheduleOverlap,
} from '../../protocol/options/settings.ts';
import { type KeptHeaders, readTriggerOptions } from '../../protocol/options/trigger-options.ts';
import { parseCron } from '../../protocol/times/cron.ts';
import { nextCronTime } from '../../protocol/times/cron-times.ts';
import type { Destination } from '../../protocol/urls/destination.ts';
import type { PublishCommand } from '../messages/publish-command.ts';
import { publishesToGroup, type UrlGroup } from '../messages/url-groups.ts';
import type { MessageKey, Millis, NewMessage, ProjectId } from '../model.ts';
import type { OperatorFact } from '../operator-events/model.ts';

export interface Schedule {
  /** The store's key; stays when the schedule is overwritten. */
  key: number;
  projectId: ProjectId;
  id: string;
  createdAtMs: Millis;
  plan: SchedulePlan;
  state: ScheduleState;
}

/** What its owner asked for. Overwriting replaces all of it. */
export interface SchedulePlan {
  cron: string;
  destination: Destination;
  method: HttpMethod;
  header: HeaderMap;
  body: Uint8Array;
  /** The settings of each message, with `scheduleId` and, if there is a queue, `queueName`. */
  settings: MessageSettings;
  /** From the trigger to the earliest delivery. */
  delayMs?: Millis;
  callerIp?: string;
  /** Absent: `'one'`. */
  catchUp?: ScheduleCatchUp;
  /** Absent: `'allow'`. */
  overlap?: ScheduleOverlap;
  /** With a URL group: what its default headers are merged with at each trigger. */
  kept?: KeptHeaders;
}

/** What changes over time. Each change gives it a new version, so that no change is based on an outdated state. */
export interface ScheduleState {
  /** Unique for ever among all versions of all schedules. */
  version: number;
  isPaused: boolean;
  /** When the next trigger is due, unless the schedule is paused; a pause leaves it as it was. */
  nextAtMs: Millis;
  /** Times up to this one are done: none of them is ever triggered again. Absent: none is done yet. */
  passedUntilMs?: Millis;
  /** The latest trigger; its messages have consecutive keys. Absent: there was none. */
  lastTrigger?: { atMs: Millis; firstKey: MessageKey; messages: number };
  /** Why the latest trigger could not make its messages. */
  error?: string;
}

/** Gives a schedule its next state, if it still is at `fromVersion`, and saves its messages in the same transaction. */
export interface ScheduleChange {
  key: number;
  fromVersion: number;
  state: ScheduleState;
  messages: NewMessage[];
  /** That a time of it was missed or met late; saved with the change. */
  fact?: OperatorFact;
}

/** How a message of the latest trigger ended, or that it has not ended yet. */
export type TriggeredState = 'unfinished' | 'delivered' | 'failed';

export interface TriggeredMessage {
  messageId: string;
  state: TriggeredState;
}

/** A trigger that is later than this was missed. A minute is the finest resolution of an expression. */
export const LATE_MS = 60_000;

/**
 * When a clock was set back by no more than this, a schedule waits until the times that were triggered already have
 * passed. A wrong time zone makes no larger difference. With a larger one the clock was wrong before, and the schedule
 * must not stand still until that wrong time.
 */
export const SET_BACK_MS_MAX = 24 * 3_600_000;

/** Later than any time that means something; still a date. */
const NEVER_MS = 8_640_000_000_000_000;

/** The next time of a schedule that is created, overwritten or resumed at `nowMs`. */
export function firstTimeOf(cron: string, passedUntilMs: Millis | undefined, nowMs: Millis): Millis {
  const aheadMs = (passedUntilMs ?? nowMs) - nowMs;
  const fromMs = aheadMs > 0 && aheadMs <= SET_BACK_MS_MAX ? nowMs + aheadMs : nowMs;
  return nextCronTime(parseCron(cron), fromMs) ?? NEVER_MS;
}

/** What to do about the times of a schedule that are due. */
export interface Trigger {
  /** How often its messages are made: 0 when the times are skipped. */
  times: number;
  nextAtMs: Millis;
  passedUntilMs: Millis;
}

/** For a schedule whose expression cannot be read any more, because its time zone no longer exists. */
export function neverAgain(nowMs: Millis): Trigger {
  return { times: 0, nextAtMs: NEVER_MS, passedUntilMs: nowMs };
}

/**
 * Decides what is made of a schedule that is due at `nowMs`. `isBusy` says that a message of the trigger before is
 * unfinished. At most `timesMax` (at least 1) triggers are made now; for the others the schedule stays due. Throws
 * `ApiError` when the expression cannot be read.
 */
export function triggerOf(
  { plan, state }: Pick<Schedule, 'plan' | 'state'>,
  { isBusy, nowMs, timesMax }: { isBusy: boolean; nowMs: Millis; timesMax: number },
): Trigger {
  const { catchUp = 'one', overlap = 'allow' } = plan;
  const cron = parseCron(plan.cron);
  const { nextAtMs } = state;
  const timeAfter = (afterMs: Millis): Millis => nextCronTime(cron, afterMs, nextAtMs) ?? NEVER_MS;
  const rest = { nextAtMs: timeAfter(nowMs), passedUntilMs: nowMs };
  if (overlap === 'skip' && isBusy) return { times: 0, ...rest };
  // Triggers that follow each other at once would overlap.
  if (catchUp === 'all' && overlap === 'allow') return triggerEach(nextAtMs, timeAfter, { nowMs, timesMax });
  const isMissed = catchUp === 'skip' && timeAfter(Math.max(nextAtMs - 1, nowMs - LATE_MS)) > nowMs;
  return { times: isMissed ? 0 : 1, ...rest };
}

function triggerEach(
  firstMs: Millis,
  timeAfter: (afterMs: Millis) => Millis,
  { nowMs, timesMax }: { nowMs: Millis; timesMax: number },
): Trigger {
  let times = 1;
  let passedUntilMs = firstMs;
  let nextAtMs = timeAfter(firstMs);
  while (nextAtMs <= nowMs && times < timesMax) {
    times += 1;
    passedUntilMs = nextAtMs;
    nextAtMs = timeAfter(nextAtMs);
  }
  return { times, nextAtMs, passedUntilMs };
}

/**
 * The messages of one trigger: one, or one for each endpoint of `group`. Throws `ApiError` when there can be none; its
 * text is what the schedule shows as its error.
 */
export function publishesOf({ plan, id }: Schedule, group: UrlGroup | undefined, nowMs: Millis): PublishCommand[] {
  const { destination, method, header, body, settings, delayMs, callerIp } = plan;
  const options: PublishCommand['options'] = { method, header, explicitHeader: header, settings };
  if (delayMs !== undefined) options.delayMs = delayMs;
  const shared: Omit<PublishCommand, 'url'> = { body, options };
  if (callerIp !== undefined) shared.callerIp = callerIp;
  if (destination.kind === 'url') return [{ ...shared, url: destination.url }];
  if (group === undefined) throw new ApiError('not_found', `topic ${destination.name} not found`);
  if (group.headers === undefined || plan.kept === undefined) return publishesToGroup(group, shared);
  const merged = readTriggerOptions(plan.kept, group.headers, { own: options, nowMs });
  merged.settings.scheduleId = id;
  if (settings.queueName !== undefined) merged.settings.queueName = settings.queueName;
  return publishesToGroup(group, { ...shared, options: merged });
}
