/**
 * Which entries of a growing log are new? Their order is that of their times, but not that of their commits: an entry
 * may be committed after others that are later in the log. So the latest entries are looked at again each time, without
 * those that were told already.
 */
import type { Millis } from '../model.ts';
import type { LogPosition } from '../stores.ts';

/** Entries remembered: those that are looked at again. An entry that is committed before so many others is not missed. */
export const REMEMBERED_MAX = 2_000;
/** An entry that is older is forgotten, so that a look at a log in which nothing happens costs nothing. */
const REMEMBERED_MS = 60_000;
/** An entry further ahead was written before a clock was set back by days. New entries come before it. */
const AHEAD_MS = 60_000;

const BEFORE_ALL: LogPosition = { timeMs: -1, n: -1 };

export class LiveWindow {
  /** Entries up to here are not looked at. */
  #from: LogPosition;
  /** All known entries after `#from`, in their order. */
  #known: LogPosition[] = [];

  /** The latest time at which entries are looked at. */
  static toMs(nowMs: Millis): Millis {
    return nowMs + AHEAD_MS;
  }

  /** Knows the entries at `newest`, which are the last of the log, newest first, and those before them. */
  constructor(newest: readonly LogPosition[], nowMs: Millis) {
    const isWhole = newest.length < REMEMBERED_MAX;
    this.#from = (isWhole ? undefined : newest.at(-1)) ?? BEFORE_ALL;
    this.know(isWhole ? newest : newest.slice(0, -1), nowMs);
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

  /** Whether it has to begin anew, since the clock was set back to before all that it looks at. */
  isAheadOf(nowMs: Millis): boolean {
    return this.#from.timeMs > LiveWindow.toMs(nowMs);
  }

  /** From now on the entries at `positions` are known, and the oldest known ones may be forgotten. */
  know(positions: readonly LogPosition[], nowMs: Millis): void {
    const known = [...this.#known, ...positions.map(({ timeMs, n }) => ({ timeMs, n }))];
    known.sort((a, b) => a.timeMs - b.timeMs || a.n - b.n);
    let forgotten = Math.max(0, known.length - REMEMBERED_MAX);
    while ((known[forgotten]?.timeMs ?? Infinity) < nowMs - REMEMBERED_MS) forgotten += 1;
    this.#from = known[forgotten - 1] ?? this.#from;
    this.#known = known.slice(forgotten);
  }
}
