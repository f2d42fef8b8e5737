/**
 * What time does the engine count with, when somebody sets the clock? The wall clock's, which it never follows back: then time
 * goes on from where it was. Forward it follows, since a machine that slept looks the same.
 */
import type { Millis } from '../model.ts';
import type { Clock, JumpListener, Machine, Timer } from '../ports.ts';

/** A wall clock that is off by less was corrected as clocks are, and is followed both ways. */
const JUMP_MS = 2_000;
/**
 * Set back by more, it was wrong before, and is followed: otherwise all that is dated would be dated wrongly, and what waits
 * when the process ends would wait for that time.
 */
export const LEAD_MS_MAX = 24 * 3_600_000;

/** How far the engine's time is ahead of a wall clock that was set back. */
export class Lead {
  #ms: Millis = 0;
  #offsetMs: Millis | undefined;
  readonly #listeners: JumpListener[] = [];

  get ms(): Millis {
    return this.#ms;
  }

  /** From now on `listener` is told of each jump. */
  onJump(listener: JumpListener): void {
    this.#listeners.push(listener);
  }

  /** The wall clock shows so much more than has elapsed. */
  note(offsetMs: Millis): void {
    const jumpMs = offsetMs - (this.#offsetMs ?? offsetMs);
    this.#offsetMs = offsetMs;
    if (Math.abs(jumpMs) < JUMP_MS) return;
    this.#ms = within(this.#ms - jumpMs);
    for (const listener of this.#listeners) listener(Math.round(jumpMs));
  }

  /** Others that go by the same wall clock are so far ahead of it. */
  join(leadMs: Millis): void {
    if (leadMs - this.#ms >= JUMP_MS) this.#ms = within(leadMs);
  }
}

function within(leadMs: Millis): Millis {
  return leadMs > LEAD_MS_MAX ? 0 : Math.max(0, leadMs);
}

/** By the wall clock of one machine. */
export class SteadyClock implements Clock {
  readonly #machine: Machine;
  readonly #lead = new Lead();

  constructor(machine: Machine) {
    this.#machine = machine;
    this.nowMs(); // a jump is one from what is shown now
  }

  nowMs(): Millis {
    const wallMs = this.#machine.wallMs();
    this.#lead.note(wallMs - this.#machine.elapsedMs);
    return wallMs + Math.round(this.#lead.ms);
  }

  wallMs(): Millis {
    return this.#machine.wallMs();
  }

  get elapsedMs(): Millis {
    return this.#machine.elapsedMs;
  }

  startTimer(delayMs: Millis, task: () => void): Timer {
    return this.#machine.startTimer(delayMs, task);
  }

  onJump(listener: JumpListener): void {
    this.#lead.onJump(listener);
  }
}

/** `clock` for what goes by the wall: its `nowMs` is what the wall clock shows. */
export function byTheWall(clock: Clock): Clock {
  return {
    nowMs: () => clock.wallMs(),
    wallMs: () => clock.wallMs(),
    get elapsedMs() {
      return clock.elapsedMs;
    },
    startTimer: (delayMs, task) => clock.startTimer(delayMs, task),
    onJump: (listener) => clock.onJump(listener),
  };
}
