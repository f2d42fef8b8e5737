/**
 * The types of lanes, which are queues and flow-control keys (contract M 14, 16), and the rules of lanes that need no
 * store. Messages wait in a lane because of the limits of the lane.
 */
import type { MessageId, Millis } from '../model.ts';

export interface Queue {
  name: string;
  createdAtMs: Millis;
  updatedAtMs: Millis;
  /** How many messages may be started and not finished at a time. */
  parallelism: number;
  isPaused: boolean;
  /** Unfinished messages, including running messages. */
  lag: number;
  blockedBy?: QueueBlocker;
}

/**
 * The message that blocks a queue: all lane permits belong to messages that wait for a retry or a delay, and among them
 * this message is due first.
 */
export interface QueueBlocker {
  messageId: MessageId;
  dueAtMs: Millis;
}

/** The current state of a flow-control key (contract M 22.30). */
export interface FlowKey {
  key: string;
  /** Due messages that wait for the key's limits or its pause. */
  waitListSize: number;
  /** Absent: not limited. */
  parallelism?: number;
  /** Attempts in flight. */
  inFlight: number;
  /** Absent: not limited. */
  rate?: number;
  periodS: number;
  /** Attempts started in the current period; 0 once the period has ended. */
  rateCount: number;
  /** When the latest period started; absent: no period has started yet. */
  periodStartedAtMs?: Millis;
  isPaused: boolean;
  isParallelismPinned: boolean;
  isRatePinned: boolean;
}

/** The state of a key without the size of its wait list. */
export type FlowKeyState = Omit<FlowKey, 'waitListSize'>;

/** The pinned settings of a key: no message changes these settings until the key is unpinned. */
export interface FlowPin {
  parallelism?: number;
  rate?: number;
  /** Only with `rate`; absent: the key keeps its period. */
  periodS?: number;
}

/**
 * The rate limit of a key, and the starts in its current window. `null` means that there is no limit, or no window yet.
 */
export interface RateWindow {
  rate: number | null;
  periodS: number;
  startedAtMs: Millis | null;
  count: number;
}

/** The time within which a worker's decision is always saved: no database delays a save for so long. */
const SAVED_LATE_MS = 60_000;

/**
 * Whether a start at `nowMs` falls into the window. Windows are fixed: a window opens with the first start after the end
 * of the previous window, and lasts a period. A window may open after `nowMs` if another worker opened it after this
 * start was decided: the start then belongs to that window. But if the window opens later than `nowMs` by a period and by
 * `SAVED_LATE_MS`, the clock was set back, and the window counts as ended.
 */
export function isWindowOpen({ startedAtMs, periodS }: RateWindow, nowMs: Millis): boolean {
  if (startedAtMs === null) return false;
  const periodMs = periodS * 1000;
  return nowMs < startedAtMs + periodMs && nowMs > startedAtMs - Math.max(periodMs, SAVED_LATE_MS);
}

/** How many more attempts may start now within the rate. */
export function startsLeft(window: RateWindow, nowMs: Millis): number {
  if (window.rate === null) return Infinity;
  return Math.max(0, window.rate - (isWindowOpen(window, nowMs) ? window.count : 0));
}

/** The state of `window` after one more start at `nowMs`. */
export function countStart(window: RateWindow, nowMs: Millis): RateWindow {
  if (isWindowOpen(window, nowMs)) return { ...window, count: window.count + 1 };
  return { ...window, startedAtMs: nowMs, count: 1 };
}

/** The state of a key that determines when the next message of its wait list may start. */
export interface FlowState {
  window: RateWindow;
  parallelism: number | null;
  isPaused: boolean;
  inFlight: number;
  /**
   * Messages that have left the wait list, and wait for their origin or project. These messages start before the messages
   * in the list.
   */
  released: number;
  /** When the first waiting message becomes ready; null if no message waits. */
  firstReadyAtMs: Millis | null;
}

/**
 * When the first waiting message may start. Returns null if the message must wait for another event: then the time is
 * computed again after that event.
 */
export function nextStartAtMs(state: FlowState, nowMs: Millis): Millis | null {
  const { window, parallelism, isPaused, inFlight, released, firstReadyAtMs } = state;
  if (firstReadyAtMs === null || isPaused) return null;
  if (parallelism !== null && inFlight + released >= parallelism) return null;
  const left = startsLeft(window, nowMs);
  if (left > 0) return left > released ? firstReadyAtMs : null;
  return Math.max(firstReadyAtMs, (window.startedAtMs ?? nowMs) + window.periodS * 1000);
}
