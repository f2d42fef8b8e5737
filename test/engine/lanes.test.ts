/** The rules of flow-control keys that need no store: fixed windows, and when a wait list is served (contract M 16.5). */
import { describe, expect, it } from 'vitest';
import {
  countStart,
  type FlowState,
  isWindowOpen,
  nextStartAtMs,
  type RateWindow,
  startsLeft,
} from '../../src/engine/lanes/lanes.ts';
import { NOW_MS } from './fixtures.ts';

const MINUTE_MS = 60_000;
const window = (changes: Partial<RateWindow> = {}): RateWindow => ({
  rate: 5,
  periodS: 60,
  startedAtMs: NOW_MS,
  count: 2,
  ...changes,
});

describe('the window of a rate', () => {
  it('is open from its first start until its period is over', () => {
    expect(isWindowOpen(window({ startedAtMs: null }), NOW_MS)).toBe(false);
    expect(isWindowOpen(window(), NOW_MS)).toBe(true);
    expect(isWindowOpen(window(), NOW_MS + MINUTE_MS - 1)).toBe(true);
    expect(isWindowOpen(window(), NOW_MS + MINUTE_MS)).toBe(false);
  });

  it.each([
    ['a minute', 1, MINUTE_MS],
    ['its period, if that is longer', 3_600, 60 * MINUTE_MS],
  ])('of another worker that is up to %s ahead is open; one further ahead is not', (_, periodS, aheadMs) => {
    expect(isWindowOpen(window({ periodS }), NOW_MS - aheadMs + 1)).toBe(true);
    expect(isWindowOpen(window({ periodS }), NOW_MS - aheadMs)).toBe(false);
  });

  it('leaves the rest of the rate during it, and the whole rate once it is over', () => {
    expect(startsLeft(window(), NOW_MS)).toBe(3);
    expect(startsLeft(window({ count: 9 }), NOW_MS)).toBe(0);
    expect(startsLeft(window({ count: 9 }), NOW_MS + MINUTE_MS)).toBe(5);
    expect(startsLeft(window({ rate: null }), NOW_MS)).toBe(Infinity);
  });

  it('counts a start, and starts again with the first one after it', () => {
    expect(countStart(window(), NOW_MS + 1)).toEqual(window({ count: 3 }));
    const later = NOW_MS + MINUTE_MS;
    expect(countStart(window(), later)).toEqual(window({ startedAtMs: later, count: 1 }));
  });
});

describe('the wait list of a key is served', () => {
  const state = (changes: Partial<FlowState> = {}): FlowState => ({
    window: window({ rate: null }),
    parallelism: null,
    isPaused: false,
    inFlight: 0,
    released: 0,
    firstReadyAtMs: NOW_MS + 7,
    ...changes,
  });

  it.each<[string, Partial<FlowState>, number | null]>([
    ['when its first is ready', {}, NOW_MS + 7],
    ['never while nobody waits', { firstReadyAtMs: null }, null],
    ['never while it is paused', { isPaused: true }, null],
    ['while it has a slot', { parallelism: 3, inFlight: 1, released: 1 }, NOW_MS + 7],
    ['never while its slots are taken, or will be by those let go', { parallelism: 2, inFlight: 1, released: 1 }, null],
    ['while more may start than were let go', { window: window(), released: 2 }, NOW_MS + 7],
    ['never while those let go may have the rest of the rate', { window: window(), released: 3 }, null],
    ['when its period is over, once its rate is spent', { window: window({ count: 5 }) }, NOW_MS + MINUTE_MS],
    [
      'when its first is ready, if that is later than the end of the period',
      { window: window({ count: 5 }), firstReadyAtMs: NOW_MS + 2 * MINUTE_MS },
      NOW_MS + 2 * MINUTE_MS,
    ],
    [
      'a period from now, where it may start none at all',
      { window: window({ rate: 0, startedAtMs: null }) },
      NOW_MS + MINUTE_MS,
    ],
  ])('%s', (_, changes, expected) => {
    expect(nextStartAtMs(state(changes), NOW_MS)).toBe(expected);
  });
});
