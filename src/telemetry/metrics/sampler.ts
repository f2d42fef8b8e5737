/**
 * What only a store knows is read when it is asked for, and not more often than each few seconds: an idle server reads
 * nothing (P12), and however often it is asked, the store has little to do.
 */
import type { CellState } from '../../engine/commands.ts';
import type { Totals } from '../../engine/lists/unfinished.ts';
import { withTimeLimit } from '../../engine/loops/time-limit.ts';
import type { Millis } from '../../engine/model.ts';
import type { Clock } from '../../engine/ports.ts';
import { StoreUnavailable } from '../../engine/store-errors.ts';

/** Shorter than the usual intervals of Prometheus, so that each of its requests brings new numbers. */
const EVERY_MS = 4_000;

/** Each of several cells is read once in so much for each of them, so that many cost no more than a few. */
const EVERY_OF_CELL_MS = 1_000;

/** Of cells at rest too: whoever changes something there has the cell open, and tells of it as well. */
const EVERY_MS_MAX = 60_000;

/** Time limit for a store. After it, the latest sample is reported with its age. */
const WAIT_MS = 1_000;

/** Cells share the connections to their server with all else that is done there. */
const AT_ONCE = 4;

/** A store to sample: the only one, or that of a cell. */
export type Source = Pick<CellState, 'state' | 'readTotals'> & { readonly name?: string };

export interface Sample {
  /** Absent: there is only one. */
  cell?: string;
  totals: Totals;
  /** As `elapsedMs` counts. */
  takenAtMs: Millis;
}

export class Sampler {
  readonly #sources: () => Source[];
  readonly #clock: Clock;
  #stores = new Map<string | undefined, StoreSampler>();
  #refreshing: Promise<void> | undefined;

  constructor(sources: () => Source[], clock: Clock) {
    this.#sources = sources;
    this.#clock = clock;
  }

  /** The latest of each store that has ever answered. */
  get latest(): Sample[] {
    return [...this.#stores.values()].flatMap(({ latest }) => latest ?? []);
  }

  /** Whether the store did not answer when it was last asked, or takes too long. */
  isAway(name: string): boolean {
    return this.#stores.get(name)?.isAway === true;
  }

  /** Takes samples where the latest is old. Resolves when they are taken, or when a store takes too long. */
  async refresh(): Promise<void> {
    const known = this.#stores;
    const sources = this.#sources();
    this.#stores = new Map(sources.map(({ name }) => [name, known.get(name) ?? new StoreSampler(this.#clock)]));
    this.#refreshing ??= this.#refreshAll(sources).finally(() => {
      this.#refreshing = undefined;
    });
    await withTimeLimit(this.#clock, WAIT_MS, this.#refreshing);
  }

  /** A few at a time. One that takes long is left to itself, and holds up no other. */
  async #refreshAll(sources: readonly Source[]): Promise<void> {
    const left = [...sources];
    const everyMs = Math.min(EVERY_MS_MAX, Math.max(EVERY_MS, sources.length * EVERY_OF_CELL_MS));
    const refreshSome = async () => {
      for (let source = left.shift(); source; source = left.shift()) {
        const store = this.#stores.get(source.name);
        if (store) await withTimeLimit(this.#clock, WAIT_MS, store.refresh(source, everyMs));
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, refreshSome));
  }
}

class StoreSampler {
  readonly #clock: Clock;
  #latest: Sample | undefined;
  /** Of what is not answered yet, as `elapsedMs` counts. */
  #askedAtMs: Millis | undefined;
  #hasFailed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get latest(): Sample | undefined {
    return this.#latest;
  }

  get isAway(): boolean {
    return this.#hasFailed || (this.#askedAtMs !== undefined && this.#clock.elapsedMs - this.#askedAtMs >= WAIT_MS);
  }

  /** One that was not answered in time is not asked again, nor waited for, until its answer comes. */
  async refresh(source: Source, everyMs: Millis): Promise<void> {
    if (this.#askedAtMs !== undefined || source.state === 'changing' || source.state === 'away') return;
    const takenAtMs = this.#clock.elapsedMs;
    const againMs = source.state === 'resting' ? EVERY_MS_MAX : everyMs;
    if (this.#latest && takenAtMs - this.#latest.takenAtMs < againMs) return;
    this.#askedAtMs = takenAtMs;
    try {
      const totals = await source.readTotals();
      this.#latest = { ...(source.name !== undefined && { cell: source.name }), totals, takenAtMs };
      this.#hasFailed = false;
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      this.#hasFailed = true;
    } finally {
      this.#askedAtMs = undefined;
    }
  }
}
