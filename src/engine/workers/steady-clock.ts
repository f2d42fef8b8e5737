/**
 * The engine's time, which handles changes of the wall clock. When the wall clock is set forward, the engine follows,
 * since a machine that was suspended looks the same. When the wall clock is set back, the engine's time continues from
 * its former value, unless the change is very small (`JUMP_MS`) or very large (`LEAD_MS_MAX`).
 */
import type { Millis } from '../model.ts';
import type { Clock, JumpListener, Machine, Timer, TimerKind } from '../ports.ts';

/** A change of the wall clock by less than this is a normal correction, which the engine follows in both directions. */
const JUMP_MS = 2_000;
/**
 * If a wall clock is set back by more than this, it was wrong before, so the engine's time follows it. Otherwise all
 * dates would be wrong, and messages that still wait when the process ends would wait until the wrong time.
 */
export const LEAD_MS_MAX = 24 * 3_600_000;

/**
 * How far the engine's time is ahead of a wall clock that was set back. In whole milliseconds, because stores keep it so.
 */
export class ClockLead {
  #ms: Millis = 0;
  #offsetMs: Millis | undefined;
  readonly #listeners: JumpListener[] = [];

  get ms(): Millis {
    return this.#ms;
  }

  /** From now on calls `listener` at each jump. */
  onJump(listener: JumpListener): void {
    this.#listeners.push(listener);
  }

  /** `offsetMs`: wall-clock time minus elapsed time. */
  noteOffset(offsetMs: Millis): void {
    const jumpMs = offsetMs - (this.#offsetMs ?? offsetMs);
    this.#offsetMs = offsetMs;
    if (Math.abs(jumpMs) < JUMP_MS) return;
    const wholeMs = Math.round(jumpMs);
    this.#ms = limitLead(this.#ms - wholeMs);
    for (const listener of this.#listeners) listener(wholeMs);
  }

  /** Notes that other workers on the same wall clock have a time that is `leadMs` ahead of the wall clock. */
  noteOthers(leadMs: Millis): void {
    if (leadMs - this.#ms >= JUMP_MS) this.#ms = limitLead(leadMs);
  }
}

function limitLead(leadMs: Millis): Millis {
  return leadMs > LEAD_MS_MAX ? 0 : Math.max(0, leadMs);
}

/** The engine's time by the wall clock of one machine. */
export class SteadyClock implements Clock {
  readonly #machine: Machine;
  readonly #lead = new ClockLead();

  constructor(machine: Machine) {
    this.#machine = machine;
    this.nowMs(); // jumps are measured from the clock's current time
  }

  nowMs(): Millis {
    const wallMs = this.#machine.wallMs();
    this.#lead.noteOffset(wallMs - this.#machine.elapsedMs);
    return wallMs + this.#lead.ms;
  }

  get leadMs(): Millis {
    return this.#lead.ms;
  }

  wallMs(): Millis {
    return this.#machine.wallMs();
  }

  get elapsedMs(): Millis {
    return this.#machine.elapsedMs;
  }

  get isSimulated(): boolean | undefined {
    return this.#machine.isSimulated;
  }

  startTimer(delayMs: Millis, task: () => void, kind?: TimerKind): Timer {
    return this.#machine.startTimer(delayMs, task, kind);
  }

  onJump(listener: JumpListener): void {
    this.#lead.onJump(listener);
  }
}

/** `clock` with the wall-clock time as its `nowMs`, for schedules. */
export function withWallTime(clock: Clock): Clock {
  return {
    nowMs: () => clock.wallMs(),
    wallMs: () => clock.wallMs(),
    leadMs: 0,
    get elapsedMs() {
      return clock.elapsedMs;
    },
    isSimulated: clock.isSimulated,
    startTimer: (delayMs, task, kind) => clock.startTimer(delayMs, task, kind),
    onJump: (listener) => clock.onJump(listener),
  };
}
