/** The entries that viewers of a log get, over a log in memory, in simulated time. */

import { beforeEach, expect, it } from 'vitest';
import { LiveFeeds, type LogWatcher, READ_MAX } from '../../src/engine/live/feed.ts';
import { REMEMBERED_MAX } from '../../src/engine/live/window.ts';
import { ProjectAway, StoreUnavailable } from '../../src/engine/store-errors.ts';
import type { LiveEntry, LogPosition } from '../../src/engine/stores.ts';
import type { Store } from '../../src/store/store.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';

const DAY_MS = 86_400_000;

/** A log of one project, in the order of its commits. */
class MemoryLog implements Pick<Store['logs'], 'listLogsAfter' | 'newestLogs'> {
  readonly entries: LiveEntry[] = [];
  reads = 0;
  away: StoreUnavailable | undefined;

  commit(...positions: LogPosition[]): void {
    for (const position of positions) {
      this.entries.push({
        ...position,
        state: 'CREATED',
        messageId: 'msg_x',
        url: 'https://a.example/',
        method: 'POST',
      });
    }
  }

  listLogsAfter: Store['logs']['listLogsAfter'] = async ({ after, toMs, except, count }) => {
    const known = new Set(except);
    return this.#between(after, toMs)
      .filter(({ n }) => !known.has(n))
      .slice(0, count);
  };

  newestLogs: Store['logs']['newestLogs'] = async ({ toMs, count, after }) => ({
    positions: this.#between({ timeMs: -1, n: -1 }, toMs).toReversed().slice(0, count),
    countAfter: after ? this.#between(after, toMs).length : 0,
  });

  #between(after: LogPosition, toMs: number): LiveEntry[] {
    this.reads += 1;
    if (this.away) throw this.away;
    return this.entries.filter((entry) => isBefore(after, entry) && entry.timeMs <= toMs).toSorted(byPosition);
  }
}

function byPosition(a: LogPosition, b: LogPosition): number {
  return a.timeMs - b.timeMs || a.n - b.n;
}

function isBefore(a: LogPosition, b: LogPosition): boolean {
  return byPosition(a, b) < 0;
}

class Notes implements LogWatcher {
  readonly begun: (number | undefined)[] = [];
  readonly told: number[] = [];
  lost = 0;
  isOver = false;

  start(last: LogPosition | undefined): void {
    this.begun.push(last?.n);
  }

  publish(entries: readonly LiveEntry[]): void {
    this.told.push(...entries.map(({ n }) => n));
  }

  skip(count: number): void {
    this.lost += count;
  }

  close(): void {
    this.isOver = true;
  }
}

let clock: SimulatedClock;
let log: MemoryLog;
let feeds: LiveFeeds;
beforeEach(() => {
  clock = new SimulatedClock();
  log = new MemoryLog();
  feeds = new LiveFeeds(log, clock);
});

async function watch(): Promise<Notes & { stop: () => void }> {
  const notes = new Notes();
  const stop = feeds.watch(1, notes);
  await clock.advanceBy(0);
  return Object.assign(notes, { stop });
}

const at = (n: number, timeMs = clock.nowMs()): LogPosition => ({ timeMs, n });
const many = (first: number, count: number): LogPosition[] => Array.from({ length: count }, (_, i) => at(first + i));

it('shows all entries that are committed after it has opened, within a second, and no earlier ones', async () => {
  log.commit(at(1), at(2));
  const notes = await watch();
  expect([notes.begun, notes.told]).toEqual([[2], []]);
  log.commit(at(3), at(4));
  await clock.advanceBy(1_000);
  expect(notes.told).toEqual([3, 4]);
});

it('shows entries that are committed late too, before known ones, and nothing twice', async () => {
  const notes = await watch();
  const before = clock.nowMs();
  await clock.advanceBy(10_000);
  log.commit(at(2), at(5), at(7));
  await clock.advanceBy(1_000);
  log.commit(at(6, before), at(1), at(5.5, clock.nowMs() - 1_000));
  await clock.advanceBy(1_000);
  await clock.advanceBy(1_000);
  expect(notes.told).toEqual([2, 5, 7, 6, 5.5, 1]);
});

it('shows each entry once, in whatever order several workers commit', async () => {
  const random = new SeededRandom(7);
  const notes = await watch();
  const pending: LogPosition[] = [];
  let next = 1;
  for (let turn = 0; turn < 400; turn += 1) {
    for (let i = random.int(0, 20); i > 0; i -= 1) pending.push(at(next++));
    await clock.advanceBy(random.int(0, 300));
    while (pending.length > 0 && random.chance(0.9))
      log.commit(...pending.splice(random.int(0, pending.length - 1), 1));
  }
  log.commit(...pending);
  await clock.advanceBy(1_000);
  expect(notes.told.length).toBeGreaterThan(3_000);
  expect(notes.told.toSorted((a, b) => a - b)).toEqual(Array.from({ length: next - 1 }, (_, i) => i + 1));
  expect(notes.lost).toBe(0);
});

it('shows a whole burst', async () => {
  const notes = await watch();
  log.commit(...many(1, 6 * READ_MAX + 1));
  await clock.advanceBy(500);
  expect([notes.told.length, notes.lost]).toEqual([6 * READ_MAX + 1, 0]);
});

it('shows a part of an endless flood, and how much is left out', async () => {
  const notes = await watch();
  let next = 1;
  for (let turn = 0; turn < 20; turn += 1) {
    log.commit(...many(next, 8 * READ_MAX));
    next += 8 * READ_MAX;
    await clock.advanceBy(500);
  }
  log.commit(at(next));
  await clock.advanceBy(1_000);
  expect(new Set(notes.told).size).toBe(notes.told.length);
  expect(notes.told.length + notes.lost).toBe(next);
  expect(notes.told.length).toBeLessThan(next / 4);
  expect(notes.told.at(-1)).toBe(next);
  expect(log.reads).toBeLessThan(80);
});

it('shows no earlier entries of a log with many, and late ones among the latest', async () => {
  log.commit(...many(1, REMEMBERED_MAX + 10));
  const last = clock.nowMs();
  const notes = await watch();
  log.commit(at(100_000, last), at(100.5, last));
  await clock.advanceBy(1_000);
  expect(notes.told).toEqual([100.5, 100_000]);
});

it('shows entries after a pause, when all earlier ones are forgotten', async () => {
  log.commit(...many(1, 10));
  const notes = await watch();
  await clock.advanceBy(3_600_000);
  log.commit(at(11));
  await clock.advanceBy(1_000);
  expect(notes.told).toEqual([11]);
});

it('shows entries that are written after the wall clock was set back by days', async () => {
  const notes = await watch();
  log.commit(at(1));
  await clock.advanceBy(120_000);
  clock.jumpBy(-3 * DAY_MS);
  await clock.advanceBy(1_000);
  log.commit(at(2));
  await clock.advanceBy(1_000);
  expect([notes.told, notes.begun.length]).toEqual([[1, 2], 1]);
});

it('shows entries that were written while the store could not be read', async () => {
  log.away = new StoreUnavailable('away');
  const notes = await watch();
  expect(notes.begun).toEqual([]);
  log.away = undefined;
  await clock.advanceBy(1_000);
  expect(notes.begun).toEqual([undefined]);
  log.away = new StoreUnavailable('away');
  log.commit(at(1));
  await clock.advanceBy(5_000);
  log.away = undefined;
  await clock.advanceBy(1_000);
  expect(notes.told).toEqual([1]);
});

it('serves all viewers with the same reads, however many they are, and reads nothing without viewers', async () => {
  const first = await watch();
  await clock.advanceBy(10_000);
  const readsOfOne = log.reads;
  const second = await watch();
  expect(second.begun).toHaveLength(1);
  await clock.advanceBy(10_000);
  expect(log.reads - readsOfOne).toBeLessThanOrEqual(21);
  first.stop();
  log.commit(at(1));
  await clock.advanceBy(1_000);
  expect([first.told, second.told]).toEqual([[], [1]]);
  second.stop();
  const { reads } = log;
  await clock.advanceBy(60_000);
  expect([log.reads, clock.nextTimerAtMs]).toEqual([reads, undefined]);
});

it('reports that the project is gone, after which the log is not read; later viewers start again', async () => {
  const notes = await watch();
  log.away = new ProjectAway(1, false); // moving, and perhaps back soon
  await clock.advanceBy(5_000);
  expect(notes.isOver).toBe(false);
  log.away = new ProjectAway(1, true);
  await clock.advanceBy(1_000);
  expect(notes.isOver).toBe(true);
  const { reads } = log;
  await clock.advanceBy(5_000);
  expect(log.reads).toBe(reads);
  log.away = undefined;
  const later = await watch();
  notes.stop();
  log.commit(at(1));
  await clock.advanceBy(1_000);
  expect([later.begun, later.told, notes.told]).toEqual([[undefined], [1], []]);
});
