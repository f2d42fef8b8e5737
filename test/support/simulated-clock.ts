/**
 * A clock that only a test advances, with a deterministic order of all events (P15).
 *
 * The clock has two times, like a real machine: `elapsedMs` only grows and drives the timers; `wallMs()` is the wall
 * clock, which `jumpBy` sets forward or back without effect on timers. `nowMs()` is derived from both by a `SteadyClock`.
 */
import { setImmediate as afterMicrotasks } from 'node:timers';
import type { Millis } from '../../src/engine/model.ts';
import type { Clock, JumpListener, Timer } from '../../src/engine/ports.ts';
import { SteadyClock } from '../../src/engine/workers/steady-clock.ts';

interface PendingTimer {
  atMs: Millis;
  task: () => void;
}

/** 2026-01-01T00:00:00Z, so that times have realistic values. */
const START_MS = Date.UTC(2026, 0, 1);

export class SimulatedClock implements Clock {
  #elapsedMs: Millis = 0;
  #wallStartMs: Millis;
  readonly #tickMs: Millis;
  /** Sorted by time, then by insertion. The next timer is the last element. */
  readonly #timers: PendingTimer[] = [];
  readonly #pendingWork = new Set<Promise<unknown>>();
  readonly #steady: SteadyClock;

  /** `tickMs`: the resolution of timers. */
  constructor(startMs: Millis = START_MS, tickMs: Millis = 1) {
    this.#wallStartMs = startMs;
    this.#tickMs = tickMs;
    this.#steady = new SteadyClock(this);
  }

  nowMs(): Millis {
    return this.#steady.nowMs();
  }

  get leadMs(): Millis {
    return this.#steady.leadMs;
  }

  onJump(listener: JumpListener): void {
    this.#steady.onJump(listener);
  }

  wallMs(): Millis {
    return this.#wallStartMs + this.#elapsedMs;
  }

  /** Time since the start, independent of the wall clock. */
  get elapsedMs(): Millis {
    return this.#elapsedMs;
  }

  /** The `elapsedMs` at which the next timer fires; `undefined` if there is none. */
  get nextTimerAtMs(): Millis | undefined {
    return this.#timers.at(-1)?.atMs;
  }

  startTimer(delayMs: Millis, task: () => void): Timer {
    const timer: PendingTimer = {
      atMs: this.#elapsedMs + Math.max(0, Math.ceil(delayMs / this.#tickMs) * this.#tickMs),
      task,
    };
    this.#timers.splice(this.#indexFor(timer.atMs), 0, timer);
    return {
      cancel: () => {
        const index = this.#timers.indexOf(timer);
        if (index >= 0) this.#timers.splice(index, 1);
      },
    };
  }

  /** Resolves once `delayMs` have passed. */
  delay(delayMs: Millis): Promise<void> {
    return new Promise((resolve) => {
      this.startTimer(delayMs, resolve);
    });
  }

  /** Sets the wall clock forward, or back when negative. */
  jumpBy(ms: Millis): void {
    this.nowMs(); // a component may have read the clock right before
    this.#wallStartMs += ms;
    this.nowMs();
  }

  /** Stops the clock until `work` is done, such as a query of a real database. */
  hold<T>(work: Promise<T>): Promise<T> {
    const held = work.finally(() => this.#pendingWork.delete(held));
    this.#pendingWork.add(held);
    return held;
  }

  /** Resolves when all work that needs no time is finished. */
  async settled(): Promise<void> {
    do {
      await Promise.allSettled(this.#pendingWork);
      await new Promise((resolve) => {
        afterMicrotasks(resolve);
      });
    } while (this.#pendingWork.size > 0);
  }

  /** Advances by `ms` and runs the timers that become due, each after all effects of the previous one. */
  advanceBy(ms: Millis): Promise<void> {
    return this.advanceTo(this.#elapsedMs + ms);
  }

  /** Like `advanceBy`, until `elapsedMs` is reached. */
  async advanceTo(elapsedMs: Millis): Promise<void> {
    await this.settled();
    while (await this.#runNext(elapsedMs));
    this.#elapsedMs = Math.max(this.#elapsedMs, elapsedMs);
  }

  /** Advances until `done` returns true after a timer. Resolves to false after `limitMs`, or if no timer is left. */
  async runUntil(done: () => boolean, limitMs: Millis): Promise<boolean> {
    const untilMs = this.#elapsedMs + limitMs;
    await this.settled();
    while (!done()) {
      if (!(await this.#runNext(untilMs))) return false;
    }
    return true;
  }

  /** Advances until no timer is left. Throws if a timer is left after `limitMs`. */
  async runUntilIdle(limitMs: Millis): Promise<void> {
    await this.runUntil(() => false, limitMs);
    if (this.#timers.length > 0) throw new Error(`timers are still pending after ${limitMs} ms`);
  }

  async #runNext(untilMs: Millis): Promise<boolean> {
    const timer = this.#timers.at(-1);
    if (!timer || timer.atMs > untilMs) return false;
    this.#timers.pop();
    this.#elapsedMs = timer.atMs;
    timer.task();
    await this.settled();
    return true;
  }

  /** The index for a new timer at `atMs`: below all timers that fire at the same time or earlier. */
  #indexFor(atMs: Millis): number {
    let low = 0;
    let high = this.#timers.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = this.#timers[middle];
      if (other !== undefined && other.atMs > atMs) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
