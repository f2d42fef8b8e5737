/**
 * The state of schedules, and the decision when they are triggered and which messages they publish (contract M 15). Pure;
 * `loop.ts` applies the decision.
 */

import { ApiError } from '../../protocol/errors.ts';
import type {
  HeaderMap,
  HttpMethod,
  MessageSettings,
  ScheduleCatchUp,
  ScheduleOverlap,
} from '../../protocol/options/settings.ts';
import { readTriggerOptions, type SavedHeaders } from '../../protocol/options/trigger-options.ts';
import { parseCron } from '../../protocol/times/cron.ts';
import { nextCronTime } from '../../protocol/times/cron-times.ts';
import type { Destination } from '../../protocol/urls/destination.ts';
import type { PublishCommand } from '../messages/publish-command.ts';
import { publishesToGroup, type UrlGroup } from '../messages/url-groups.ts';
import type { MessageKey, Millis, NewMessage, ProjectId } from '../model.ts';
import type { OperatorFact } from '../operator-events/model.ts';

export interface Schedule {
  /** The store's key, which an overwritten schedule keeps. */
  key: number;
  projectId: ProjectId;
  id: string;
  createdAtMs: Millis;
  plan: SchedulePlan;
  state: ScheduleState;
}

/** The settings that the owner chose for a schedule. Overwriting the schedule replaces all settings. */
export interface SchedulePlan {
  cron: string;
  destination: Destination;
  method: HttpMethod;
  header: HeaderMap;
  body: Uint8Array;
  /** The settings of each message, with `scheduleId` and, if there is a queue, `queueName`. */
  settings: MessageSettings;
  /** Time from the trigger to the earliest delivery. */
  delayMs?: Millis;
  callerIp?: string;
  /** Absent: `'one'`. */
  catchUp?: ScheduleCatchUp;
  /** Absent: `'allow'`. */
  overlap?: ScheduleOverlap;
  /** With a URL group: the headers with which the group's default headers are merged at each trigger. */
  kept?: SavedHeaders;
}

/**
 * The changing part of a schedule. Each change assigns a new version, and is saved only if the previous version is
 * unchanged.
 */
export interface ScheduleState {
  /** A number that is unique among all versions of all schedules. */
  version: number;
  isPaused: boolean;
  /** When the next trigger is due, unless the schedule is paused. A pause does not change this time. */
  nextAtMs: Millis;
  /** The times up to this one are never triggered again. Absent until the first trigger. */
  passedUntilMs?: Millis;
  /** The latest trigger; its messages have consecutive keys. Absent: there was none. */
  lastTrigger?: { atMs: Millis; firstKey: MessageKey; messages: number };
  /** The error of the latest trigger, if it failed. */
  error?: string;
}

/**
 * The next state of a schedule, and its new messages. Both are saved in one transaction, if the version is still
 * `fromVersion`.
 */
export interface ScheduleChange {
  key: number;
  fromVersion: number;
  state: ScheduleState;
  messages: NewMessage[];
  /** The fact that a time was missed or triggered late; saved with the change. */
  fact?: OperatorFact;
}

/** The state of a message of the latest trigger. */
export type TriggeredState = 'unfinished' | 'delivered' | 'failed';

export interface TriggeredMessage {
  messageId: string;
  state: TriggeredState;
}

/** A trigger that is late by more than this counts as missed. A minute is the finest resolution of a cron expression. */
export const LATE_MS = 60_000;

/**
 * If a clock was set back by no more than this, a schedule waits until the times that were already triggered have passed:
 * a wrong time zone makes no larger difference. If the clock was set back by more, it was wrong before, and the schedule
 * must not wait until that wrong time.
 */
export const SET_BACK_MS_MAX = 24 * 3_600_000;

/** The latest time that `Date` can represent. */
const NEVER_MS = 8_640_000_000_000_000;

/** The next time of a schedule that is created, overwritten or resumed at `nowMs`. */
export function firstTimeOf(cron: string, passedUntilMs: Millis | undefined, nowMs: Millis): Millis {
  const aheadMs = (passedUntilMs ?? nowMs) - nowMs;
  const fromMs = aheadMs > 0 && aheadMs <= SET_BACK_MS_MAX ? nowMs + aheadMs : nowMs;
  return nextCronTime(parseCron(cron), fromMs) ?? NEVER_MS;
}

/** The decision about the due times of a schedule. */
export interface Trigger {
  /** The number of triggers: 0 when the times are skipped. */
  times: number;
  nextAtMs: Millis;
  passedUntilMs: Millis;
}

/** The decision for a schedule whose cron expression has become invalid, because its time zone no longer exists. */
export function noFurtherTrigger(nowMs: Millis): Trigger {
  return { times: 0, nextAtMs: NEVER_MS, passedUntilMs: nowMs };
}

/**
 * Decides how often a schedule that is due at `nowMs` is triggered. `isBusy`: a message of its previous trigger is
 * unfinished. At most `timesMax` (at least 1) triggers happen now; if more are due, the schedule stays due. Throws
 * `ApiError` if the cron expression is invalid.
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
  // Triggers without a pause between them would overlap.
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
 * The messages of one trigger: one message, or one for each endpoint of `group`. Throws `ApiError`, whose text the
 * schedule shows as its error.
 */
export function messagesOfTrigger(
  { plan, id }: Schedule,
  group: UrlGroup | undefined,
  nowMs: Millis,
): PublishCommand[] {
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
