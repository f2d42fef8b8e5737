/**
 * Time that passes only when a test says so, in which the order of everything is fixed (P15).
 *
 * Two times, as on a real machine: `elapsedMs` only grows and drives the timers; `wallMs()` is the wall clock, which
 * `jumpBy` sets forward or back without any timer noticing. `nowMs()` is made of them as everywhere.
 */
import { setImmediate as afterMicrotasks } from 'node:timers';
import type { Millis } from '../../src/engine/model.ts';
import type { Clock, JumpListener, Timer } from '../../src/engine/ports.ts';
import { SteadyClock } from '../../src/engine/workers/steady-clock.ts';

interface PendingTimer {
  atMs: Millis;
  task: () => void;
}

/** 2026-01-01T00:00:00Z: a time like any other, so that sums with it look like real ones. */
const START_MS = Date.UTC(2026, 0, 1);

export class SimulatedClock implements Clock {
  #elapsedMs: Millis = 0;
  #wallStartMs: Millis;
  readonly #tickMs: Millis;
  /** Sorted by time, then by insertion; the next one is the last element. */
  readonly #timers: PendingTimer[] = [];
  readonly #held = new Set<Promise<unknown>>();
  readonly #steady: SteadyClock;

  /** `tickMs`: what no timer is finer than. */
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

  /** Time since the start, whatever the wall clock was set to meanwhile. */
  get elapsedMs(): Millis {
    return this.#elapsedMs;
  }

  /** `elapsedMs` at which the next timer fires; `undefined` without any. */
  get nextTimerAtMs(): Millis | undefined {
    return this.#timers.at(-1)?.atMs;
  }

  startTimer(delayMs: Millis, task: () => void): Timer {
    const timer: PendingTimer = {
      atMs: this.#elapsedMs + Math.max(0, Math.ceil(delayMs / this.#tickMs) * this.#tickMs),
      task,
    };
    this.#timers.splice(this.#placeOf(timer.atMs), 0, timer);
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
    this.nowMs(); // somebody has looked at the clock before
    this.#wallStartMs += ms;
    this.nowMs();
  }

  /** No time passes until `work` is done, which takes none that anybody here could notice: a real database may do it. */
  hold<T>(work: Promise<T>): Promise<T> {
    const held = work.finally(() => this.#held.delete(held));
    this.#held.add(held);
    return held;
  }

  /** Lets everything finish that needs no time to pass. */
  async settled(): Promise<void> {
    do {
      await Promise.allSettled(this.#held);
      await new Promise((resolve) => {
        afterMicrotasks(resolve);
      });
    } while (this.#held.size > 0);
  }

  /** Lets `ms` pass; runs what falls due on the way, each timer after all that the one before has set off. */
  advanceBy(ms: Millis): Promise<void> {
    return this.advanceTo(this.#elapsedMs + ms);
  }

  /** As `advanceBy`, up to the moment when `elapsedMs` is `elapsedMs`. */
  async advanceTo(elapsedMs: Millis): Promise<void> {
    await this.settled();
    while (await this.#runNext(elapsedMs));
    this.#elapsedMs = Math.max(this.#elapsedMs, elapsedMs);
  }

  /** Lets time pass until `done` says so, asked after each timer. Answers false when `limitMs` passed first or nothing is left. */
  async runUntil(done: () => boolean, limitMs: Millis): Promise<boolean> {
    const untilMs = this.#elapsedMs + limitMs;
    await this.settled();
    while (!done()) {
      if (!(await this.#runNext(untilMs))) return false;
    }
    return true;
  }

  /** Lets time pass until no timer is left. Throws when there still is one after `limitMs`. */
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

  /** Where a timer for `atMs` belongs: after (that is, below) all that fire at the same time or earlier. */
  #placeOf(atMs: Millis): number {
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
