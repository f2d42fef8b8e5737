/**
 * What the engine needs from outside, each a small interface: time, randomness, the endpoints' network.
 * Production and simulation differ in nothing else (P15).
 */
import type { Claimed, Millis, Outcome } from './model.ts';

export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Unix time. Never assume that it only grows: machines' clocks are set back. */
  nowMs(): Millis;
  /** Time since some moment, which only grows, whatever the wall clock is set to. */
  readonly elapsedMs: Millis;
  /** Runs `task` once, `delayMs` from now or a little later. */
  startTimer(delayMs: Millis, task: () => void): Timer;
}

export interface Randomness {
  /** Cryptographically strong in production. */
  bytes(count: number): Uint8Array;
}

/** Makes attempts. Never decides what they mean and never throws: each failure is an outcome. */
export interface Delivery {
  /** One HTTP request for `claimed`, ended with `interrupted` when `signal` aborts first. */
  attempt(claimed: Claimed, signal: AbortSignal): Promise<Outcome>;
  close(): Promise<void>;
}

/** Where the engine reports what an operator should know. Never bodies, tokens or full URLs. */
export interface EventLog {
  debug(event: string, fields?: Record<string, string | number | boolean>): void;
  info(event: string, fields?: Record<string, string | number | boolean>): void;
  warn(event: string, fields?: Record<string, string | number | boolean>): void;
  error(event: string, fields?: Record<string, string | number | boolean>): void;
}
