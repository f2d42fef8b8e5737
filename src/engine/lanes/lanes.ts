/**
 * Lanes: backlogs in which messages wait because something limits them, a queue or a flow-control key (contract M 14, 16).
 * Here are their types and the rules that need no store.
 */
import type { MessageId, Millis } from '../model.ts';

export interface Queue {
  name: string;
  createdAtMs: Millis;
  updatedAtMs: Millis;
  /** Messages that may be started and not finished at a time. */
  parallelism: number;
  isPaused: boolean;
  /** Unfinished messages, running ones included. */
  lag: number;
  blockedBy?: QueueBlocker;
}

/** While every slot of a queue is held by a message that waits for a retry or a delay: the one that is due first. */
export interface QueueBlocker {
  messageId: MessageId;
  dueAtMs: Millis;
}

/** The present state of a flow-control key (contract M 22.30). */
export interface FlowKey {
  key: string;
  /** Ready messages that wait for the key's limits or its pause to end. */
  waitListSize: number;
  /** Absent: not limited. */
  parallelism?: number;
  /** Attempts in flight. */
  inFlight: number;
  /** Absent: not limited. */
  rate?: number;
  periodS: number;
  /** Attempts started in the current period; 0 once it has ended. */
  rateCount: number;
  /** When the last period began; absent before the first. */
  periodStartedAtMs?: Millis;
  isPaused: boolean;
  isParallelismPinned: boolean;
  isRatePinned: boolean;
}

/** A key of which it was not counted how many messages wait for it. */
export type FlowKeyState = Omit<FlowKey, 'waitListSize'>;

/** Parts of a key that no message can change until they are unpinned. */
export interface FlowPin {
  parallelism?: number;
  rate?: number;
  /** With `rate`; absent: the key keeps its period. */
  periodS?: number;
}

/** The limits of a key and how much of its rate is used. `null`: no limit, or no window yet. */
export interface RateWindow {
  rate: number | null;
  periodS: number;
  startedAtMs: Millis | null;
  count: number;
}

/** How late a worker's decision may be saved: longer than any database makes it wait. */
const SAVED_LATE_MS = 60_000;

/**
 * Whether a start at `nowMs` falls into the window. Windows are fixed: one begins with the first start after the window
 * before has ended, and lasts a period. A window may begin after `nowMs`, when another worker began it after this start
 * was decided: the start belongs to it. But when it begins later by more than a period and `SAVED_LATE_MS`, the clock
 * was set back, and the window counts as ended.
 */
export function isWindowOpen({ startedAtMs, periodS }: RateWindow, nowMs: Millis): boolean {
  if (startedAtMs === null) return false;
  const periodMs = periodS * 1000;
  return nowMs < startedAtMs + periodMs && nowMs > startedAtMs - Math.max(periodMs, SAVED_LATE_MS);
}

/** How many attempts may start now without more than `rate` of them in the window. */
export function startsLeft(window: RateWindow, nowMs: Millis): number {
  if (window.rate === null) return Infinity;
  return Math.max(0, window.rate - (isWindowOpen(window, nowMs) ? window.count : 0));
}

/** `window` after one more start at `nowMs`. */
export function countStart(window: RateWindow, nowMs: Millis): RateWindow {
  if (isWindowOpen(window, nowMs)) return { ...window, count: window.count + 1 };
  return { ...window, startedAtMs: nowMs, count: 1 };
}

/** What decides when the next message of a key's wait list may start. */
export interface FlowState {
  window: RateWindow;
  parallelism: number | null;
  isPaused: boolean;
  inFlight: number;
  /** Messages that left the wait list and wait for their origin or their project: they start before the next ones. */
  released: number;
  /** When the first waiting message becomes ready; `null`: none waits. */
  firstReadyAtMs: Millis | null;
}

/**
 * When the first waiting message may start. `null` when something else must happen before, which then computes it anew.
 */
export function nextStartAtMs(state: FlowState, nowMs: Millis): Millis | null {
  const { window, parallelism, isPaused, inFlight, released, firstReadyAtMs } = state;
  if (firstReadyAtMs === null || isPaused) return null;
  if (parallelism !== null && inFlight + released >= parallelism) return null;
  const left = startsLeft(window, nowMs);
  if (left > 0) return left > released ? firstReadyAtMs : null;
  return Math.max(firstReadyAtMs, (window.startedAtMs ?? nowMs) + window.periodS * 1000);
}
