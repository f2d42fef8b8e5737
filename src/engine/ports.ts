/**
 * The engine's interfaces to the outside: time, randomness, and the network to endpoints. Production and simulation
 * differ only in the implementations of these interfaces (P15).
 */
import type { Run } from '../workflow/model.ts';
import type { Count } from './minutes/counts.ts';
import type { Change, Claimed, Message, Millis, NewMessage, Outcome } from './model.ts';

export interface Timer {
  cancel(): void;
}

/**
 * `work`: accepted messages may wait for the timer. `upkeep`: no accepted message waits for the timer; an example is the
 * timer for the next trigger of a schedule or for a round of retention. `outside`: a pause for something outside this
 * process, such as a lock in the database.
 */
export type TimerKind = 'work' | 'upkeep' | 'outside';

/** The clocks and timers of a machine. */
export interface Machine {
  /**
   * Unix time of the wall clock, which can be set forward and back. Used for schedules, signatures, retention, and times
   * that users name.
   */
  wallMs(): Millis;
  /** Monotonic time since some fixed moment. */
  readonly elapsedMs: Millis;
  /** Whether a test controls the time. Then the clock is never set, and the machine never sleeps. */
  readonly isSimulated?: boolean | undefined;
  /**
   * Runs `task` once, after `delayMs` or a little later. Only tests that control the time use `kind`, which is `work` by
   * default.
   */
  startTimer(delayMs: Millis, task: () => void, kind?: TimerKind): Timer;
}

/** Called when the wall clock was set, with the change, which is negative if the clock was set back. */
export type JumpListener = (byMs: Millis) => void;

export interface Clock extends Machine {
  /**
   * Unix time for delays, retries, rates, deadlines, claims, and their log entries. It follows the wall clock, but keeps
   * running when the wall clock is set back (`steady-clock.ts`). It is not monotonic: if the wall clock is set back by a
   * moment, or by more than a day, the time follows.
   */
  nowMs(): Millis;
  /**
   * How far the time was ahead of the wall clock at the latest call of `nowMs`. Subtracting separate readings of both
   * clocks would also count the time between the readings.
   */
  readonly leadMs: Millis;
  onJump(listener: JumpListener): void;
}

export interface Randomness {
  /** Cryptographically strong in production. */
  bytes(count: number): Uint8Array;
}

/** An attempt in flight. */
export interface AttemptInFlight {
  /** Restarts the time limit of the attempt, because the endpoint has shown activity. */
  extend(): void;
  /** Stops the time limit of the attempt until `extend`, because the endpoint waits for the server. */
  pause(): void;
  /** Ends the attempt as `interrupted`, unless the attempt has ended. */
  interrupt(): void;
}

/** Makes attempts. Never interprets their outcomes and never throws: each failure is an outcome. */
export interface Delivery {
  /**
   * Sends one HTTP request for `claimed`. The outcome is `interrupted` when `signal` aborts first. Calls `onStart` when the
   * request is sent.
   */
  attempt(claimed: Claimed, signal: AbortSignal, onStart?: (attempt: AttemptInFlight) => void): Promise<Outcome>;
  close(): Promise<void>;
}

/** Receives each saved change, for monitoring. Its methods must be fast. */
export interface Observer {
  /** `newMessage` was saved. */
  accepted(newMessage: NewMessage, atMs: Millis): void;
  /** An attempt has ended, and its outcome is not saved yet. */
  attempted(claimed: Claimed, outcome: Outcome, endedAtMs: Millis): void;
  /** `change` was saved, after an attempt. */
  settled(claimed: Claimed, change: Change, atMs: Millis): void;
  /** The run returned or was cancelled. A failed run is reported by `settled`. */
  runEnded(run: EndedRun, state: 'RUN_SUCCESS' | 'RUN_CANCELED', atMs: Millis): void;
  /** The wait that `record` registered has ended. */
  woken(record: Message, by: 'event' | 'deadline', atMs: Millis): void;
}

export type EndedRun = Pick<Run, 'projectId' | 'id' | 'url' | 'createdAtMs' | 'config'>;

/** Counts the events of a worker for its metrics. */
export interface Metrics extends Pick<Observer, 'attempted'> {
  count(counts: readonly Count[]): void;
  /** How late a schedule was triggered. */
  triggered(lagMs: Millis): void;
  /** The outcome of an attempt was not saved: the message was claimed again, or is gone. */
  claimLost(): void;
}

/** The log for the operator of the server. It never contains bodies, tokens or full URLs. */
export interface EventLog {
  debug(event: string, fields?: Record<string, string | number | boolean>): void;
  info(event: string, fields?: Record<string, string | number | boolean>): void;
  warn(event: string, fields?: Record<string, string | number | boolean>): void;
  error(event: string, fields?: Record<string, string | number | boolean>): void;
}
