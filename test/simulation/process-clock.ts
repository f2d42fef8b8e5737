/**
 * The clock of one process. Its timers end with the process. While the process is stopped, as by SIGSTOP, due timers wait
 * until it continues. The wall clock may be wrong by a fixed skew.
 */
import type { Millis } from '../../src/engine/model.ts';
import type { Machine, Timer } from '../../src/engine/ports.ts';

/** The process died before it responded. */
export class ProcessDied extends Error {}

export class ProcessClock implements Machine {
  /** Rejects when the process dies. */
  readonly death: Promise<never>;
  /** How far the wall clock is ahead of the true time. */
  skewMs: Millis;
  readonly #clock: Machine;
  #isDead = false;
  #reject: (error: Error) => void = () => {};
  /** Timers that became due while the process was stopped. */
  #held: (() => void)[] = [];
  #awake: { promise: Promise<void>; resolve: () => void } | undefined;

  constructor(clock: Machine, skewMs: Millis = 0) {
    this.#clock = clock;
    this.skewMs = skewMs;
    this.death = new Promise((_, reject) => {
      this.#reject = reject;
    });
    this.death.catch(() => {}); // awaited only while the process starts
  }

  wallMs(): Millis {
    return this.#clock.wallMs() + this.skewMs;
  }

  get elapsedMs(): Millis {
    return this.#clock.elapsedMs;
  }

  get isFrozen(): boolean {
    return this.#awake !== undefined;
  }

  startTimer(delayMs: Millis, task: () => void): Timer {
    let isCancelled = false;
    const run = () => {
      if (this.#isDead || isCancelled) return;
      if (this.#awake) this.#held.push(run);
      else task();
    };
    const timer = this.#clock.startTimer(delayMs, run);
    return {
      cancel: () => {
        isCancelled = true;
        timer.cancel();
      },
    };
  }

  /** Resolves at once, or when a stopped process continues. */
  awake(): Promise<void> {
    return this.#awake?.promise ?? Promise.resolve();
  }

  freeze(): void {
    this.#awake ??= Promise.withResolvers();
  }

  thaw(): void {
    const held = this.#held;
    const awake = this.#awake;
    this.#held = [];
    this.#awake = undefined;
    for (const run of held) run(); // like an event loop: timers before network I/O
    awake?.resolve();
  }

  die(): void {
    this.#isDead = true;
    this.#reject(new ProcessDied());
  }
}
