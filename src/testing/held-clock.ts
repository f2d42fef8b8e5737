/** Time that stands still until a test lets it pass, while requests, endpoints and the store are real. */
import type { Millis } from '../engine/model.ts';
import type { Clock, Timer, TimerKind } from '../engine/ports.ts';
import { endOfTurn, systemClock } from '../system/system.ts';

interface PendingTimer {
  atMs: Millis;
  task: () => void;
  kind: TimerKind;
}

export class HeldClock implements Clock {
  readonly isHeld = true;
  readonly #timers = new Set<PendingTimer>();
  #nowMs: Millis;

  /** Default: from the real time on. */
  constructor(startMs: Millis = systemClock.wallMs()) {
    this.#nowMs = startMs;
  }

  nowMs(): Millis {
    return this.#nowMs;
  }

  wallMs(): Millis {
    return this.#nowMs;
  }

  readonly leadMs = 0; // nobody sets it

  onJump(): void {}

  get elapsedMs(): Millis {
    return this.#nowMs;
  }

  /** What happens outside does not wait for time that is held: a timer for that fires in real time. */
  startTimer(delayMs: Millis, task: () => void, kind: TimerKind = 'work'): Timer {
    if (kind === 'outside') return systemClock.startTimer(delayMs, task);
    const timer = { atMs: this.#nowMs + Math.ceil(delayMs), task, kind };
    this.#timers.add(timer);
    // What is due already must not wait until time passes again: nobody may know that it has to.
    if (delayMs <= 0) void endOfTurn().then(() => this.#fire(timer));
    return { cancel: () => this.#timers.delete(timer) };
  }

  /** When the next timer fires, of all or of one kind; `undefined` without any. */
  nextTimerAtMs(kind?: TimerKind): Millis | undefined {
    return this.#nextUntil(Number.POSITIVE_INFINITY, kind)?.atMs;
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

  #nextUntil(untilMs: Millis, kind?: TimerKind): PendingTimer | undefined {
    let next: PendingTimer | undefined;
    for (const timer of this.#timers) {
      if (kind !== undefined && timer.kind !== kind) continue;
      if (timer.atMs <= untilMs && (next === undefined || timer.atMs < next.atMs)) next = timer;
    }
    return next;
  }

  #fire(timer: PendingTimer): void {
    if (this.#timers.delete(timer)) timer.task();
  }
}
