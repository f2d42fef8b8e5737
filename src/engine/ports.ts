/**
 * What the engine needs from outside, each a small interface: time, randomness, the endpoints' network.
 * Production and simulation differ in nothing else (P15).
 */
import type { Run } from '../workflow/model.ts';
import type { Count } from './minutes/counts.ts';
import type { Change, Claimed, Message, Millis, NewMessage, Outcome } from './model.ts';

export interface Timer {
  cancel(): void;
}

/**
 * `upkeep`: nothing that was accepted waits for it, such as the next time of a schedule, or a round of dropping.
 * `outside`: a pause until something outside this process is over, such as a lock in the database.
 */
export type TimerKind = 'work' | 'upkeep' | 'outside';

/** The clocks and timers of a machine. */
export interface Machine {
  /**
   * Unix time of the wall clock, which can be set, also back. For schedules, signatures, retention, and what people do.
   */
  wallMs(): Millis;
  /** Time since some fixed moment. It only grows, whatever the wall clock is set to. */
  readonly elapsedMs: Millis;
  /** Whether time passes only when a test says so. It is never set then, and does not sleep. */
  readonly isHeld?: boolean | undefined;
  /** Runs `task` once, `delayMs` from now or a little later. The kind is for whoever holds the time; default: `work`. */
  startTimer(delayMs: Millis, task: () => void, kind?: TimerKind): Timer;
}

/** Hears by how much the wall clock was set: forward, or back when `byMs` is negative. */
export type JumpListener = (byMs: Millis) => void;

export interface Clock extends Machine {
  /**
   * Unix time for all that waits: delays, retries, rates, deadlines, claims, and what is logged of them. It follows the
   * wall clock, but goes on when that is set back (`steady-clock.ts`). Never assume that it only grows: when the wall
   * clock is set back by moments, or by more than a day, it follows.
   */
  nowMs(): Millis;
  /** How far the latest `nowMs` was ahead of the wall clock. Two readings differ by the time between them as well. */
  readonly leadMs: Millis;
  onJump(listener: JumpListener): void;
}

export interface Randomness {
  /** Cryptographically strong in production. */
  bytes(count: number): Uint8Array;
}

/** An attempt that is not answered yet. */
export interface UnderWay {
  /** Lets its time limit begin anew: the endpoint has shown that it is at work. */
  extend(): void;
  /** Its time limit stands still until `extend`: the endpoint waits for us. */
  pause(): void;
  /** Ends it as `interrupted`, unless it has ended. */
  interrupt(): void;
}

/** Makes attempts. Never decides what they mean and never throws: each failure is an outcome. */
export interface Delivery {
  /**
   * One HTTP request for `claimed`, ended with `interrupted` when `signal` aborts first. `begun` is called at once if a
   * request is to be sent.
   */
  attempt(claimed: Claimed, signal: AbortSignal, begun?: (attempt: UnderWay) => void): Promise<Outcome>;
  close(): Promise<void>;
}

/** Hears of what happens, once it is saved, for an operator's monitoring. Each call costs next to nothing. */
export interface Observer {
  /** `newMessage` was saved. */
  accepted(newMessage: NewMessage, atMs: Millis): void;
  /** An attempt has ended; nothing of it is saved yet. */
  attempted(claimed: Claimed, outcome: Outcome, endedAtMs: Millis): void;
  /** `change` was saved, after an attempt. */
  settled(claimed: Claimed, change: Change, atMs: Millis): void;
  /** The run returned or was cancelled. One that failed is told of by `settled`. */
  runEnded(run: EndedRun, state: 'RUN_SUCCESS' | 'RUN_CANCELED', atMs: Millis): void;
  /** The wait that `record` registered is over. */
  woken(record: Message, by: 'event' | 'deadline', atMs: Millis): void;
}

export type EndedRun = Pick<Run, 'projectId' | 'id' | 'url' | 'createdAtMs' | 'config'>;

/** The counts of a worker. */
export interface Metrics extends Pick<Observer, 'attempted'> {
  count(counts: readonly Count[]): void;
  /** A schedule was triggered so long after its time. */
  triggered(lagMs: Millis): void;
  /** The outcome of an attempt was not saved: the message was claimed anew, or is gone. */
  claimLost(): void;
}

/** Where the engine reports what an operator should know. Never bodies, tokens or full URLs. */
export interface EventLog {
  debug(event: string, fields?: Record<string, string | number | boolean>): void;
  info(event: string, fields?: Record<string, string | number | boolean>): void;
  warn(event: string, fields?: Record<string, string | number | boolean>): void;
  error(event: string, fields?: Record<string, string | number | boolean>): void;
}
