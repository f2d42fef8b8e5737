/** Time that stands still until a statement lets it pass, while requests, endpoints and the store are real. */
import { setImmediate as afterThisTurn } from 'node:timers';
import type { Millis } from '../../../src/engine/model.ts';
import type { Clock, Timer } from '../../../src/engine/ports.ts';

interface PendingTimer {
  atMs: Millis;
  task: () => void;
}

export class HeldClock implements Clock {
  /** From the real time on: the official receiver compares a signature's `exp` with the machine's clock. */
  #nowMs: Millis = Date.now();
  readonly #timers = new Set<PendingTimer>();

  nowMs(): Millis {
    return this.#nowMs;
  }

  wallMs(): Millis {
    return this.#nowMs;
  }

  onJump(): void {} // nobody sets it

  get elapsedMs(): Millis {
    return this.#nowMs;
  }

  startTimer(delayMs: Millis, task: () => void): Timer {
    const timer = { atMs: this.#nowMs + Math.ceil(delayMs), task };
    this.#timers.add(timer);
    // What is due already must not wait until time passes again: nobody may know that it has to.
    if (delayMs <= 0) afterThisTurn(() => this.#fire(timer));
    return { cancel: () => this.#timers.delete(timer) };
  }

  /** When the next timer fires; `undefined` without any. */
  get nextTimerAtMs(): Millis | undefined {
    return this.#nextUntil(Number.POSITIVE_INFINITY)?.atMs;
  }

  /** Lets `ms` pass and fires what falls due on the way, in order. */
  advance(ms: Millis): void {
    this.advanceTo(this.#nowMs + ms);
  }

  /** As `advance`, up to the Unix time `ms`; never backwards. */
  advanceTo(ms: Millis): void {
    for (let timer = this.#nextUntil(ms); timer !== undefined; timer = this.#nextUntil(ms)) {
      this.#nowMs = Math.max(this.#nowMs, timer.atMs);
      this.#fire(timer);
    }
    this.#nowMs = Math.max(this.#nowMs, ms);
  }

  #nextUntil(untilMs: Millis): PendingTimer | undefined {
    let next: PendingTimer | undefined;
    for (const timer of this.#timers) {
      if (timer.atMs <= untilMs && (next === undefined || timer.atMs < next.atMs)) next = timer;
    }
    return next;
  }

  #fire(timer: PendingTimer): void {
    if (this.#timers.delete(timer)) timer.task();
  }
}
