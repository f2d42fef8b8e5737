/** Counts the acknowledged publishes and the delivered attempts per second, before and after a fault. */
import type { Ledger } from '../crash/ledger.ts';
import { eventually } from '../support/eventually.ts';

const SAMPLE_MS = 50;
/** Long enough to average out the randomness of the load. */
const WINDOW_MS = 800;
/** Delayed messages arrive in a burst, which does not count as pace. */
const BURST_MS = 250;
/** The pace that counts as recovered, and the time limit to reach it. */
export interface Recovery {
  /** The fraction of the earlier pace that must be reached. */
  share: number;
  limitMs: number;
}

/** The requirement on a machine without other load. */
export const PROMISED: Recovery = { share: 0.95, limitMs: 10_000 };

export class Pace {
  readonly #ledger: Ledger;
  readonly #samples: { atMs: number; count: number }[] = [];
  readonly #sampler: NodeJS.Timeout;
  readonly #steady: number[] = [];

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
    this.#sampler = setInterval(() => this.#sample(), SAMPLE_MS);
  }

  /**
   * The pace without faults: waits for a window of load, and returns the pace that three of four windows so far have
   * reached. Single slow windows do not count, since the load is random and the machine has other work.
   */
  async steady(): Promise<number> {
    const fromMs = performance.now();
    await eventually('a window of load', () => performance.now() - fromMs > WINDOW_MS);
    const now = this.#perSecond();
    if (now === 0) throw new Error('no message was published or delivered');
    this.#steady.push(now);
    return this.#steady.toSorted((a, b) => a - b)[Math.floor(this.#steady.length / 4)] ?? 0;
  }

  /**
   * Resolves to the time in milliseconds until the pace is at least `share` of `before` again. Randomness may explain the
   * rest.
   */
  async untilRecovered(before: number, { share, limitMs }: Recovery): Promise<number> {
    const fromMs = performance.now();
    const burstIsOverMs = fromMs + BURST_MS;
    await eventually(
      () => `the pace of ${before.toFixed(0)}/s to come back; it is ${this.#perSecond().toFixed(0)}/s`,
      () => performance.now() > burstIsOverMs + WINDOW_MS && this.#perSecond(burstIsOverMs) >= share * before,
      limitMs,
    );
    return performance.now() - fromMs;
  }

  close(): void {
    clearInterval(this.#sampler);
  }

  #sample(): void {
    this.#samples.push({ atMs: performance.now(), count: this.#ledger.progress() });
    if (this.#samples.length > (10 * WINDOW_MS) / SAMPLE_MS) this.#samples.shift();
  }

  /** The pace of the last window, or of the part of the window after `fromMs`. */
  #perSecond(fromMs = 0): number {
    const last = this.#samples.at(-1);
    if (last === undefined) return 0;
    const first = this.#samples.find(({ atMs }) => atMs >= Math.max(fromMs, last.atMs - WINDOW_MS));
    if (first === undefined || first === last) return 0;
    return ((last.count - first.count) / (last.atMs - first.atMs)) * 1_000;
  }
}
