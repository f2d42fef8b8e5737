/**
 * The clock of one process. With the process its timers end; while the process is stopped, as by SIGSTOP, what falls due
 * waits until it goes on; and what it shows may be wrong by a fixed time.
 */
import type { Millis } from '../../src/engine/model.ts';
import type { Machine, Timer } from '../../src/engine/ports.ts';

/** The server is gone, and with it the answer. */
export class ProcessDied extends Error {}

export class ProcessClock implements Machine {
  /** Rejects when the process dies. */
  readonly death: Promise<never>;
  /** How far it is ahead of the true time. */
  skewMs: Millis;
  readonly #clock: Machine;
  #isDead = false;
  #reject: (error: Error) => void = () => {};
  /** What fell due while the process was stopped. */
  #held: (() => void)[] = [];
  #awake: { promise: Promise<void>; resolve: () => void } | undefined;

  constructor(clock: Machine, skewMs: Millis = 0) {
    this.#clock = clock;
    this.skewMs = skewMs;
    this.death = new Promise((_, reject) => {
      this.#reject = reject;
    });
    this.death.catch(() => {}); // heard only while the process starts
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

  /** Resolves at once, or when the process goes on. */
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
    for (const run of held) run(); // as an event loop does: timers before what came in over connections
    awake?.resolve();
  }

  die(): void {
    this.#isDead = true;
    this.#reject(new ProcessDied());
  }
}
