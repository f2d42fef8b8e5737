/**
 * Lanes: lines in which messages wait because something limits them, a queue or a flow-control key (contract M 14, 16).
 * Here are their words and the rules that need no store.
 */
import type { Millis } from '../model.ts';

export interface Queue {
  name: string;
  createdAtMs: Millis;
  updatedAtMs: Millis;
  /** Messages that may be started and not finished at a time. */
  parallelism: number;
  isPaused: boolean;
  /** Unfinished messages, running ones included. */
  lag: number;
}

/** A flow-control key as it stands (contract M 22.30). */
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

/** Parts of a key that no message can change until they are unpinned. */
export interface FlowPin {
  parallelism?: number;
  rate?: number;
  /** With `rate`; absent: the key keeps its period. */
  periodS?: number;
}

/** The limits of a key and what it has spent of its rate; `null` is unlimited, or never. */
export interface RateWindow {
  rate: number | null;
  periodS: number;
  startedAtMs: Millis | null;
  count: number;
}

/** How late what a worker has decided may come to be saved: longer than any database keeps it waiting. */
const SAVED_LATE_MS = 60_000;

/**
 * Fixed windows: one begins with the first start after the one before has ended, and lasts a period.
 * A start that was decided before, and is saved only now, belongs to the window that another worker has begun meanwhile.
 * But one that begins further ahead than that, and than a period, cannot be: the clock was set back, and it counts as ended.
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

/** What decides when a key's wait list is to be looked at. */
export interface FlowState {
  window: RateWindow;
  parallelism: number | null;
  isPaused: boolean;
  inFlight: number;
  /** Messages that left the wait list and wait for their origin or their project: they start before the next ones. */
  released: number;
  /** When the first of those that wait becomes ready; `null`: nobody waits. */
  firstReadyAtMs: Millis | null;
}

/** When the first waiting message may start; `null` when something else must happen before: then that sets it anew. */
export function nextStartAtMs(state: FlowState, nowMs: Millis): Millis | null {
  const { window, parallelism, isPaused, inFlight, released, firstReadyAtMs } = state;
  if (firstReadyAtMs === null || isPaused) return null;
  if (parallelism !== null && inFlight + released >= parallelism) return null;
  const left = startsLeft(window, nowMs);
  if (left > 0) return left > released ? firstReadyAtMs : null;
  return Math.max(firstReadyAtMs, (window.startedAtMs ?? nowMs) + window.periodS * 1000);
}
