/** A clock that moves only when it is advanced. Requests, endpoints and the store are real. */
import type { Millis } from '../engine/model.ts';
import type { Clock, Timer, TimerKind } from '../engine/ports.ts';
import { endOfTurn, systemClock } from '../system/system.ts';

interface PendingTimer {
  atMs: Millis;
  task: () => void;
  kind: TimerKind;
}

export class VirtualClock implements Clock {
  readonly isSimulated = true;
  readonly #timers = new Set<PendingTimer>();
  #nowMs: Millis;

  /** Starts at the real time by default. */
  constructor(startMs: Millis = systemClock.wallMs()) {
    this.#nowMs = startMs;
  }

  nowMs(): Millis {
    return this.#nowMs;
  }

  wallMs(): Millis {
    return this.#nowMs;
  }

  readonly leadMs = 0; // the clock is never set

  onJump(): void {}

  get elapsedMs(): Millis {
    return this.#nowMs;
  }

  /**
   * A timer of kind `outside` fires in real time, because such a timer limits a wait for something outside of virtual
   * time.
   */
  startTimer(delayMs: Millis, task: () => void, kind: TimerKind = 'work'): Timer {
    if (kind === 'outside') return systemClock.startTimer(delayMs, task);
    const timer = { atMs: this.#nowMs + Math.ceil(delayMs), task, kind };
    this.#timers.add(timer);
    // A timer that is already due must fire without another `advance`, since nothing else may be scheduled.
    if (delayMs <= 0) void endOfTurn().then(() => this.#fire(timer));
    return { cancel: () => this.#timers.delete(timer) };
  }

  /** When the next timer, or the next timer of `kind`, fires. Returns undefined if there is no such timer. */
  nextTimerAtMs(kind?: TimerKind): Millis | undefined {
    return this.#nextUntil(Number.POSITIVE_INFINITY, kind)?.atMs;
  }

  /** Moves the clock forward by `ms` and fires the timers that become due, in order. */
  advance(ms: Millis): void {
    this.advanceTo(this.#nowMs + ms);
  }

  /** Like `advance`, but to the Unix time `ms`. Never moves the clock back. */
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
