/** Advances a virtual clock from timer to timer, and at each timer waits until all work is finished. */
import type { Millis } from '../engine/model.ts';
import type { TimerKind } from '../engine/ports.ts';
import { endOfTurn } from '../system/system.ts';
import type { VirtualClock } from './virtual-clock.ts';

/**
 * Only network I/O takes more than a few turns of the event loop, since the store is in this process, and network I/O
 * counts as work in flight. After this many turns without work in flight, nothing happens until the clock advances.
 */
const QUIET_TURNS = 10;

export class TimeAdvancer {
  readonly #clock: VirtualClock;
  readonly #workInFlight: () => Promise<unknown> | undefined;
  /** Resolves when all requested advances are finished. */
  #queue: Promise<unknown> = Promise.resolve();

  /**
   * `workInFlight` returns undefined if no work is in flight. Otherwise `workInFlight` returns a promise; when the
   * promise resolves, `workInFlight` is called again.
   */
  constructor(clock: VirtualClock, workInFlight: () => Promise<unknown> | undefined) {
    this.#clock = clock;
    this.#workInFlight = workInFlight;
  }

  nowMs(): Millis {
    return this.#clock.nowMs();
  }

  /** Whether only maintenance timers are left. */
  get isIdle(): boolean {
    return this.#clock.nextTimerAtMs('work') === undefined;
  }

  /** Advances the clock by `ms`, and finishes all work that becomes due. */
  advance(ms: Millis): Promise<void> {
    return this.#enqueue(() => this.#advanceTo(this.#clock.nowMs() + ms));
  }

  /**
   * Advances the clock until no work is scheduled. Resolves to false if some work is due only after more than `limitMs`.
   */
  runUntilIdle(limitMs: Millis): Promise<boolean> {
    return this.#enqueue(() => this.#advanceUntilIdle(this.#clock.nowMs() + limitMs));
  }

  #enqueue<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => {});
    return done;
  }

  /** Resolves when no work is left at the current time. */
  async waitUntilQuiet(): Promise<void> {
    for (let turns = 0; turns < QUIET_TURNS; turns += 1) {
      await endOfTurn();
      const work = this.#workInFlight();
      if (work === undefined) continue;
      await work;
      turns = -1;
    }
  }

  async #advanceTo(untilMs: Millis): Promise<void> {
    await this.waitUntilQuiet();
    while (await this.advanceToNextTimer(untilMs));
    this.#clock.advanceTo(untilMs);
    await this.waitUntilQuiet();
  }

  async #advanceUntilIdle(untilMs: Millis): Promise<boolean> {
    await this.waitUntilQuiet();
    while (!this.isIdle) {
      if (!(await this.advanceToNextTimer(untilMs, 'work'))) return false;
    }
    return true;
  }

  /** Advances to the next timer and returns true, unless the next timer of `kind` is after `untilMs`. */
  async advanceToNextTimer(untilMs: Millis, kind?: TimerKind): Promise<boolean> {
    const wantedAtMs = this.#clock.nextTimerAtMs(kind);
    const atMs = this.#clock.nextTimerAtMs();
    if (atMs === undefined || wantedAtMs === undefined || wantedAtMs > untilMs) return false;
    this.#clock.advanceTo(atMs);
    await this.waitUntilQuiet();
    return true;
  }
}
