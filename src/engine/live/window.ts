/**
 * Finds the new entries of a growing log. Entries are ordered by time, not by commit: an entry may be committed after
 * later entries. So each read covers the latest entries again, without the entries that were published already.
 */
import type { Millis } from '../model.ts';
import type { LogPosition } from '../stores.ts';

/**
 * The maximum of entries that are remembered and read again. An entry that is committed late is found unless this many
 * later entries were committed before it.
 */
export const REMEMBERED_MAX = 2_000;
/** The age at which entries are no longer read again, so that a read costs little when the log has no new entries. */
const REMEMBERED_MS = 60_000;
/**
 * An entry that is ahead of the current time by more than this was written before a clock was set back by days. New
 * entries are ordered before such an entry.
 */
const AHEAD_MS = 60_000;

const BEFORE_ALL: LogPosition = { timeMs: -1, n: -1 };

export class LiveWindow {
  /** Entries up to this position are not read. */
  #from: LogPosition;
  /** All known entries after `#from`, in their order. */
  #known: LogPosition[] = [];

  /** The latest time up to which entries are read. */
  static toMs(nowMs: Millis): Millis {
    return nowMs + AHEAD_MS;
  }

  /** `newest`: the last entries of the log, newest first. These entries and all entries before them count as known. */
  constructor(newest: readonly LogPosition[], nowMs: Millis) {
    const isWhole = newest.length < REMEMBERED_MAX;
    this.#from = (isWhole ? undefined : newest.at(-1)) ?? BEFORE_ALL;
    this.add(isWhole ? newest : newest.slice(0, -1), nowMs);
  }

  /** The last known entry. */
  get last(): LogPosition | undefined {
    return this.#known.at(-1) ?? (this.#from === BEFORE_ALL ? undefined : this.#from);
  }

  get from(): LogPosition {
    return this.#from;
  }

  /** The numbers of the known entries after `from`. */
  get known(): number[] {
    return this.#known.map(({ n }) => n);
  }

  /** Whether the caller must make a new window, because the clock was set back to before this window. */
  isAheadOf(nowMs: Millis): boolean {
    return this.#from.timeMs > LiveWindow.toMs(nowMs);
  }

  /** Adds the entries at `positions` to the known entries, and forgets the oldest known entries. */
  add(positions: readonly LogPosition[], nowMs: Millis): void {
    const known = [...this.#known, ...positions.map(({ timeMs, n }) => ({ timeMs, n }))];
    known.sort((a, b) => a.timeMs - b.timeMs || a.n - b.n);
    let forgotten = Math.max(0, known.length - REMEMBERED_MAX);
    while ((known[forgotten]?.timeMs ?? Infinity) < nowMs - REMEMBERED_MS) forgotten += 1;
    this.#from = known[forgotten - 1] ?? this.#from;
    this.#known = known.slice(forgotten);
  }
}
