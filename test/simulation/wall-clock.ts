/** Converts between elapsed time, which only grows, and readings of the wall clock, which can be set. */
import type { Millis } from '../../src/engine/model.ts';
import type { World } from './world.ts';

/** A period between two settings of the clock. The clock shows `elapsed + offsetMs`. */
interface ClockPeriod {
  fromMs: Millis;
  toMs: Millis;
  offsetMs: Millis;
}

/** The precision with which a worker knows the database's time: half the duration of its fastest heartbeats. */
export const CLOCK_PRECISION_MS: Millis = 250;

export class WallClock {
  readonly #periods: ClockPeriod[];
  /** The maximum difference between a worker's time and the wall clock. */
  readonly #slackMs: Millis;

  /** Includes all settings of the clock up to now. */
  constructor({ jumps, clock, isShared }: Pick<World, 'jumps' | 'clock' | 'isShared'>) {
    this.#slackMs = isShared ? CLOCK_PRECISION_MS : 0;
    const ends = [...jumps, { atMs: clock.elapsedMs, fromMs: clock.wallMs() }];
    this.#periods = ends.map(({ atMs, fromMs }, index) => ({
      fromMs: ends[index - 1]?.atMs ?? 0,
      toMs: index < jumps.length ? atMs : Infinity,
      offsetMs: fromMs - atMs,
    }));
  }

  /** The reading at an elapsed time. */
  readingAt(atMs: Millis): Millis {
    return Math.max(...this.#within(atMs, atMs).map(({ offsetMs }) => atMs + offsetMs));
  }

  /** The latest reading between two elapsed times. */
  highest(fromMs: Millis, toMs: Millis): Millis {
    const shown = this.#within(fromMs, toMs).map((stretch) => Math.min(toMs, stretch.toMs) + stretch.offsetMs);
    return Math.max(...shown) + this.#slackMs;
  }

  /** The earliest reading between two elapsed times. */
  lowest(fromMs: Millis, toMs: Millis): Millis {
    const shown = this.#within(fromMs, toMs).map((stretch) => Math.max(fromMs, stretch.fromMs) + stretch.offsetMs);
    return Math.min(...shown) - this.#slackMs;
  }

  /** The elapsed times from `fromMs` to `toMs` at which the clock showed a multiple of `everyMs`, with the readings. */
  multiples(everyMs: Millis, fromMs: Millis, toMs: Millis): { atMs: Millis; timeMs: Millis }[] {
    return this.#within(fromMs, toMs).flatMap(({ offsetMs, ...stretch }) => {
      const found: { atMs: Millis; timeMs: Millis }[] = [];
      const beginMs = Math.max(fromMs, stretch.fromMs);
      const endMs = Math.min(toMs, stretch.toMs);
      const firstMs = Math.ceil((beginMs + offsetMs) / everyMs) * everyMs;
      for (let timeMs = firstMs; timeMs - offsetMs <= endMs; timeMs += everyMs) {
        found.push({ atMs: timeMs - offsetMs, timeMs });
      }
      return found;
    });
  }

  #within(fromMs: Millis, toMs: Millis): ClockPeriod[] {
    return this.#periods.filter((stretch) => stretch.fromMs <= toMs && stretch.toMs >= fromMs);
  }
}
