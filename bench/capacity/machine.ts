/** The resources of a simulated machine: cores, threads and a disk, each used by one task at a time. Times are in milliseconds. */
import type { Millis } from '../../src/engine/model.ts';
import type { SimulatedClock } from '../../test/support/simulated-clock.ts';

/** The time slice after which a core switches to the next waiting task. */
const SLICE_MS = 0.5;

/** Cores that are shared round-robin by all tasks. */
export class Cores {
  readonly #clock: SimulatedClock;
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(clock: SimulatedClock, count: number) {
    this.#clock = clock;
    this.#free = count;
  }

  async run(ms: Millis): Promise<void> {
    for (let leftMs = ms; leftMs > 0; leftMs -= SLICE_MS) {
      if (this.#free > 0) this.#free -= 1;
      else await new Promise<void>((resolve) => this.#waiting.push(resolve));
      await this.#clock.delay(Math.min(leftMs, SLICE_MS));
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free += 1;
    }
  }
}

/** Runs one task after the other, each on any of the cores. */
export class Thread {
  readonly #cores: Cores;
  #last: Promise<void> = Promise.resolve();
  #busyMs = 0;

  constructor(cores: Cores) {
    this.#cores = cores;
  }

  /** CPU time of the tasks that have finished or started. */
  get busyMs(): Millis {
    return this.#busyMs;
  }

  run(ms: Millis): Promise<void> {
    this.#last = this.#last.then(() => {
      this.#busyMs += ms;
      return this.#cores.run(ms);
    });
    return this.#last;
  }
}

/** Callers that arrive during a sync share the next sync. */
export class Disk {
  readonly #clock: SimulatedClock;
  readonly #syncMs: Millis;
  #current: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #syncs = 0;

  constructor(clock: SimulatedClock, syncMs: Millis) {
    this.#clock = clock;
    this.#syncMs = syncMs;
  }

  get syncs(): number {
    return this.#syncs;
  }

  sync(): Promise<void> {
    if (this.#current === undefined) return this.#start();
    this.#next ??= this.#current.then(() => this.#start());
    return this.#next;
  }

  #start(): Promise<void> {
    this.#next = undefined;
    this.#syncs += 1;
    const current = this.#clock.delay(this.#syncMs).then(() => {
      if (this.#current === current) this.#current = undefined;
    });
    this.#current = current;
    return current;
  }
}
