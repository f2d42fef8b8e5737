/**
 * Samples the metrics that only the stores know, such as backlogs. Reads a store only during a scrape, so that an idle
 * server reads nothing (P12), and at most every few seconds, so that frequent scrapes cost the store little.
 */
import type { CellState } from '../../engine/commands.ts';
import type { Totals } from '../../engine/lists/unfinished.ts';
import { withTimeLimit } from '../../engine/loops/time-limit.ts';
import type { Millis } from '../../engine/model.ts';
import type { Clock } from '../../engine/ports.ts';
import { StoreUnavailable } from '../../engine/store-errors.ts';

/**
 * The minimum interval between samples of a store, shorter than Prometheus's usual scrape intervals, so that each scrape
 * has new values.
 */
const INTERVAL_MS_MIN = 4_000;

/**
 * The interval grows by this time with each cell, so that samples of many cells cost no more than samples of a few cells.
 */
const INTERVAL_MS_PER_CELL = 1_000;

/**
 * The maximum interval, and the interval for resting cells: a worker that changes a cell first opens and then samples the
 * cell.
 */
const INTERVAL_MS_MAX = 60_000;

/** The timeout of a sample. After this timeout, the previous sample is reported with its age. */
const TIMEOUT_MS = 1_000;

/**
 * The maximum of concurrent samples, because samples share the connections to the database server with all other work.
 */
const SAMPLES_AT_ONCE = 4;

/** A store to sample: the only store, or the store of a cell. */
export type SampledStore = Pick<CellState, 'state' | 'readTotals'> & { readonly name?: string };

export interface Sample {
  /** Absent if there is only one store. */
  cell?: string;
  totals: Totals;
  /** The time of the sample, on the clock of `elapsedMs`. */
  takenAtMs: Millis;
}

export class Sampler {
  readonly #sources: () => SampledStore[];
  readonly #clock: Clock;
  #stores = new Map<string | undefined, StoreSampler>();
  #refreshing: Promise<void> | undefined;

  constructor(sources: () => SampledStore[], clock: Clock) {
    this.#sources = sources;
    this.#clock = clock;
  }

  /** The latest sample of each store that has ever responded. */
  get latest(): Sample[] {
    return [...this.#stores.values()].flatMap(({ latest }) => latest ?? []);
  }

  /** Whether the last sample of the store failed or is taking too long. */
  isAway(name: string): boolean {
    return this.#stores.get(name)?.isAway === true;
  }

  /** Replaces outdated samples. Resolves when the new samples are taken, or after the timeout. */
  async refresh(): Promise<void> {
    const earlier = this.#stores;
    const sources = this.#sources();
    this.#stores = new Map(sources.map(({ name }) => [name, earlier.get(name) ?? new StoreSampler(this.#clock)]));
    this.#refreshing ??= this.#refreshAll(sources).finally(() => {
      this.#refreshing = undefined;
    });
    await withTimeLimit(this.#clock, TIMEOUT_MS, this.#refreshing);
  }

  /** Samples a few stores at a time. A store that exceeds the timeout finishes in the background. */
  async #refreshAll(sources: readonly SampledStore[]): Promise<void> {
    const remaining = [...sources];
    const intervalMs = Math.min(INTERVAL_MS_MAX, Math.max(INTERVAL_MS_MIN, sources.length * INTERVAL_MS_PER_CELL));
    const refreshSome = async () => {
      for (let source = remaining.shift(); source; source = remaining.shift()) {
        const store = this.#stores.get(source.name);
        if (store) await withTimeLimit(this.#clock, TIMEOUT_MS, store.refresh(source, intervalMs));
      }
    };
    await Promise.all(Array.from({ length: SAMPLES_AT_ONCE }, refreshSome));
  }
}

class StoreSampler {
  readonly #clock: Clock;
  #latest: Sample | undefined;
  /** Start of the pending sample, on the clock of `elapsedMs`. */
  #startedAtMs: Millis | undefined;
  #hasFailed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get latest(): Sample | undefined {
    return this.#latest;
  }

  get isAway(): boolean {
    return (
      this.#hasFailed || (this.#startedAtMs !== undefined && this.#clock.elapsedMs - this.#startedAtMs >= TIMEOUT_MS)
    );
  }

  /**
   * Takes a sample if the latest sample is older than `intervalMs`. Does nothing while an earlier sample is still
   * pending.
   */
  async refresh(source: SampledStore, intervalMs: Millis): Promise<void> {
    if (this.#startedAtMs !== undefined || source.state === 'changing' || source.state === 'away') return;
    const takenAtMs = this.#clock.elapsedMs;
    const minAgeMs = source.state === 'resting' ? INTERVAL_MS_MAX : intervalMs;
    if (this.#latest && takenAtMs - this.#latest.takenAtMs < minAgeMs) return;
    this.#startedAtMs = takenAtMs;
    try {
      const totals = await source.readTotals();
      this.#latest = { ...(source.name !== undefined && { cell: source.name }), totals, takenAtMs };
      this.#hasFailed = false;
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      this.#hasFailed = true;
    } finally {
      this.#startedAtMs = undefined;
    }
  }
}
