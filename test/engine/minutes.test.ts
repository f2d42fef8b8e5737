/** The counts per minute, and when they are saved. */
import { describe, expect, test } from 'vitest';
import { RetentionLoop } from '../../src/engine/loops/retention.ts';
import { decide } from '../../src/engine/messages/decide.ts';
import { MinuteCounter } from '../../src/engine/minutes/counter.ts';
import { addToHistogram, BOUNDS_MS, emptyMinute, type Minute } from '../../src/engine/minutes/counts.ts';
import type { Claimed, Message, NewMessage, NewRun, Outcome, ProjectId } from '../../src/engine/model.ts';
import type { EndedRun } from '../../src/engine/ports.ts';
import { Reports } from '../../src/engine/reports.ts';
import { CommitUnknown, StoreUnavailable } from '../../src/engine/store-errors.ts';
import type { Store } from '../../src/store/store.ts';
import { ENGINE_SETTINGS } from '../support/engine-settings.ts';
import { SILENT } from '../support/silent-log.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { answered, claimed, message, NOW_MS } from './fixtures.ts';

const MINUTE_MS = 60_000;
const SAVE_AFTER_MS = 10_000;
const PROJECT = 1;

class Bench {
  readonly clock = new SimulatedClock(NOW_MS);
  readonly saved: { projectId: ProjectId; minutes: readonly Minute[] }[] = [];
  readonly warnings: string[] = [];
  /** Thrown by each save while it is set. */
  error: Error | undefined;
  readonly counter = new MinuteCounter(
    {
      addMinutes: async (args: { projectId: ProjectId; minutes: readonly Minute[] }) => {
        if (this.error) throw this.error;
        this.saved.push(args);
      },
    } as Store['minutes'],
    this.clock,
    { ...SILENT, warn: (event) => this.warnings.push(event) },
  );
  readonly reports = new Reports({ log: SILENT }, this.counter);

  accept(of: Partial<Message> = {}, run?: Partial<NewRun>): void {
    const entry: NewMessage = { message: message(of), state: { kind: 'due', dueAtMs: NOW_MS }, events: [] };
    if (run) entry.run = { id: 'r', url: 'u', createdAtMs: NOW_MS, config: {} as NewRun['config'], ...run };
    this.reports.accepted(entry, NOW_MS);
  }

  /** An attempt that ended at `atMs`; `isCancelled`: its cancel was requested. */
  settle(outcome: Outcome, of: Partial<Claimed> = {}, atMs = NOW_MS, isCancelled = false): void {
    const attempted = claimed(of);
    const decision = decide(attempted, outcome, atMs);
    if (decision.kind !== 'settle') throw new Error(`decided to ${decision.kind}`);
    const { change, changeIfCancelRequested = change } = decision.settlement;
    this.reports.settled(attempted, isCancelled ? changeIfCancelRequested : change, atMs);
  }

  /** All counts since the last call, once they are saved. */
  async counted(): Promise<Partial<Minute>[]> {
    await this.clock.advanceBy(SAVE_AFTER_MS);
    return this.saved.splice(0).flatMap(({ minutes }) => minutes.map(shown));
  }
}

/** Without zeros; of the histograms, the buckets with counts. */
function shown(minute: Minute): Partial<Minute> {
  const members = Object.entries(minute).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.flatMap((count, bucket) => new Array<number>(count).fill(bucket)) : value,
  ]);
  return Object.fromEntries(members.filter(([, value]) => value !== 0 && value?.length !== 0));
}

describe('the counts', () => {
  test('new messages and runs, in the minute of their creation', async () => {
    const bench = new Bench();
    bench.accept();
    bench.accept({ createdAtMs: NOW_MS + 59_999 });
    bench.accept({ createdAtMs: NOW_MS + MINUTE_MS }, {});
    expect(await bench.counted()).toEqual([
      { atMs: NOW_MS, accepted: 2 },
      { atMs: NOW_MS + MINUTE_MS, accepted: 1, runsStarted: 1 },
    ]);
  });

  test('a run once, though the second phase of its trigger replaces its first message', async () => {
    const bench = new Bench();
    bench.accept({}, {});
    bench.accept({}, { isBySdk: true });
    expect(await bench.counted()).toEqual([{ atMs: NOW_MS, accepted: 2, runsStarted: 1 }]);
  });

  test('attempts that delivered, failed, and ended with a dead message, in the minute in which they ended', async () => {
    const bench = new Bench();
    bench.settle(answered(200));
    bench.settle(answered(500));
    bench.settle(answered(500), { retried: 3 }, NOW_MS + MINUTE_MS);
    bench.settle(answered(500), { retried: 1 }, NOW_MS + MINUTE_MS, true);
    expect(await bench.counted()).toEqual([
      { atMs: NOW_MS, delivered: 1, failedAttempts: 1, latency: [0, 0], lag: [0, 0] },
      { atMs: NOW_MS + MINUTE_MS, failedAttempts: 2, dead: 1, latency: [0, 0] },
    ]);
  });

  test('the duration of each attempt, and the lag of the first attempt of a message', async () => {
    const bench = new Bench();
    const due = { message: message({ createdAtMs: NOW_MS - 300, notBeforeMs: NOW_MS - 300 }) };
    bench.settle(answered(200), { ...due, durationMs: 30 });
    bench.settle(answered(200), { ...due, durationMs: 7_000, retried: 1 });
    expect(await bench.counted()).toEqual([{ atMs: NOW_MS, delivered: 2, latency: [3, 9], lag: [6] }]);
  });

  test('the time from acceptance to the first attempt of a message with a past due time', async () => {
    const bench = new Bench();
    bench.settle(answered(200), { message: message({ createdAtMs: NOW_MS - 300, notBeforeMs: 0 }) });
    expect(await bench.counted()).toMatchObject([{ lag: [6] }]);
  });

  test('ends of runs, a failed one together with its message', async () => {
    const bench = new Bench();
    const run = { projectId: PROJECT, id: 'r', url: 'https://a.example', createdAtMs: NOW_MS } as EndedRun;
    bench.reports.runEnded(run, 'RUN_SUCCESS', NOW_MS);
    bench.reports.runEnded(run, 'RUN_CANCELED', NOW_MS);
    const ending = { projectId: 1, runKey: 1, runVersion: 1, state: 'RUN_FAILED', atMs: NOW_MS } as const;
    const events = (['ERROR', 'FAILED'] as const).map((state) => ({ atMs: NOW_MS, state }));
    bench.reports.settled(claimed({ retried: 3 }), { next: { kind: 'finished' }, events, ending }, NOW_MS);
    const ends = { runsSucceeded: 1, runsCanceled: 1, runsFailed: 1 };
    expect(await bench.counted()).toEqual([{ atMs: NOW_MS, failedAttempts: 1, dead: 1, ...ends, latency: [0] }]);
  });

  test('a time in the first bucket whose bound it does not exceed', () => {
    for (const [bucket, bound] of BOUNDS_MS.entries()) {
      const { latency } = emptyMinute(NOW_MS);
      addToHistogram(latency, bound);
      addToHistogram(latency, bound + 1);
      expect(latency.flatMap((count, index) => (count > 0 ? index : []))).toEqual([bucket, bucket + 1]);
    }
  });
});

describe('counts are saved', () => {
  test('ten seconds after the first count, and never while nothing is counted (P12)', async () => {
    const bench = new Bench();
    expect(bench.clock.nextTimerAtMs).toBeUndefined();
    bench.accept();
    await bench.clock.advanceBy(SAVE_AFTER_MS - 1);
    bench.accept();
    expect(bench.saved).toEqual([]);
    expect(await bench.counted()).toEqual([{ atMs: NOW_MS, accepted: 2 }]);
    expect(bench.clock.nextTimerAtMs).toBeUndefined();
    bench.accept();
    expect(await bench.counted()).toEqual([{ atMs: NOW_MS, accepted: 1 }]);
  });

  test('for one project after the other', async () => {
    const bench = new Bench();
    for (const projectId of [2, 1, 2]) bench.accept({ projectId });
    await bench.clock.advanceBy(SAVE_AFTER_MS);
    expect(bench.saved.map(({ projectId, minutes }) => [projectId, minutes[0]?.accepted])).toEqual([
      [2, 2],
      [1, 1],
    ]);
  });

  test('at the end, and later counts set no timer', async () => {
    const bench = new Bench();
    bench.accept();
    await bench.counter.stop();
    expect(bench.saved).toHaveLength(1);
    bench.accept();
    expect(bench.clock.nextTimerAtMs).toBeUndefined();
  });

  test('later, with the counts since then, when the store did not save them', async () => {
    const bench = new Bench();
    bench.error = new StoreUnavailable('the disk is full');
    for (const projectId of [1, 2]) bench.accept({ projectId });
    expect(await bench.counted()).toEqual([]);
    expect(bench.warnings).toEqual(['minutes_not_saved']); // the second project waits as well
    bench.accept();
    bench.error = undefined;
    const counted = await bench.counted();
    expect(counted.reduce((sum, { accepted = 0 }) => sum + accepted, 0)).toBe(3);
  });

  test('only once, when they may have been saved or never can be', async () => {
    for (const error of [new CommitUnknown('the connection broke'), new Error('no such table')]) {
      const bench = new Bench();
      bench.error = error;
      bench.accept();
      await bench.clock.advanceBy(SAVE_AFTER_MS);
      bench.error = undefined;
      expect(await bench.counted()).toEqual([]);
      expect(bench.warnings).toEqual(['minutes_not_saved']);
      bench.accept();
      expect(await bench.counted()).toEqual([{ atMs: NOW_MS, accepted: 1 }]);
    }
  });

  test('for at most an hour while the store saves nothing (P10)', async () => {
    const bench = new Bench();
    bench.error = new StoreUnavailable('the disk is full');
    for (let minute = 0; minute < 100; minute += 1) {
      bench.accept({ createdAtMs: NOW_MS + minute * MINUTE_MS });
      await bench.clock.advanceBy(SAVE_AFTER_MS);
    }
    bench.error = undefined;
    const counted = await bench.counted();
    expect(counted).toHaveLength(60);
    expect(counted.at(-1)?.atMs).toBe(NOW_MS + 99 * MINUTE_MS);
  });
});

test.each([
  [10, 10],
  [365, 30],
])('if logs are kept for %i days, minutes are for %i', async (logDays, minuteDays) => {
  const DAY_MS = 86_400_000;
  const clock = new SimulatedClock(NOW_MS);
  const asked: number[] = [];
  const retention = new RetentionLoop({
    store: {
      retention: {
        dropExpired: async ({ minutesBeforeMs }) => {
          asked.push(minutesBeforeMs);
          return false;
        },
      },
    },
    clock,
    log: SILENT,
    settings: { ...ENGINE_SETTINGS, logRetentionMs: logDays * DAY_MS },
  });
  retention.start();
  await clock.advanceBy(0);
  await retention.stop();
  expect(asked).toEqual([NOW_MS - minuteDays * DAY_MS]);
});
