/**
 * The common time of all workers on one database. The database's clock decides, and each heartbeat of a worker measures
 * this clock. Between heartbeats the worker counts elapsed time, so setting the machine's clock has no effect. When the
 * database's clock is set back, time continues from its former value, for all workers.
 */
import type { Millis } from '../model.ts';
import type { Clock, JumpListener, Machine, Timer, TimerKind } from '../ports.ts';
import { ClockLead } from './steady-clock.ts';

export class DatabaseClock implements Clock {
  readonly #machine: Machine;
  readonly #lead = new ClockLead();
  /** The time of the database's clock when the machine's `elapsedMs` was 0. */
  #offsetMs: Millis | undefined;

  constructor(machine: Machine) {
    this.#machine = machine;
  }

  nowMs(): Millis {
    return this.wallMs() + this.#lead.ms;
  }

  /** Until the first measurement, the machine's time. */
  wallMs(): Millis {
    return this.#offsetMs === undefined ? this.#machine.wallMs() : Math.floor(this.#offsetMs + this.#machine.elapsedMs);
  }

  get elapsedMs(): Millis {
    return this.#machine.elapsedMs;
  }

  startTimer(delayMs: Millis, task: () => void, kind?: TimerKind): Timer {
    return this.#machine.startTimer(delayMs, task, kind);
  }

  onJump(listener: JumpListener): void {
    this.#lead.onJump(listener);
  }

  /** How far `nowMs` is ahead of the database's clock, which is the wall clock here. */
  get leadMs(): Millis {
    return this.#lead.ms;
  }

  /**
   * Notes that the database's clock showed `wallMs` at some moment between `requestedAtMs` and now, both in elapsed time.
   * If the current offset fits this measurement, it is kept: a slow response is imprecise, and must not move the worker's
   * time back and forth. The first offset is the lowest possible one: a higher offset could later look like a clock that
   * was set back. `leadMs`: how far other workers are ahead of the database's clock.
   */
  correct(wallMs: Millis, requestedAtMs: Millis, leadMs: Millis = 0): void {
    const lowestMs = wallMs - this.#machine.elapsedMs;
    const highestMs = wallMs - requestedAtMs;
    const knownMs = this.#offsetMs ?? lowestMs;
    this.#offsetMs = Math.min(Math.max(knownMs, lowestMs), highestMs);
    this.#lead.noteOffset(this.#offsetMs);
    this.#lead.noteOthers(leadMs);
  }
}
