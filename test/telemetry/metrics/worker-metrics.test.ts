/** How a worker computes metrics from events, and how the metrics of several workers are merged. */
import { afterEach, describe, expect, it } from 'vitest';
import type { CellState } from '../../../src/engine/commands.ts';
import type { Totals } from '../../../src/engine/lists/unfinished.ts';
import { StoreUnavailable } from '../../../src/engine/store-errors.ts';
import { exposition } from '../../../src/telemetry/metrics/exposition.ts';
import { WorkerMetrics } from '../../../src/telemetry/metrics/worker-metrics.ts';
import { answered, claimed, message, NOW_MS } from '../../engine/fixtures.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';
import { type Family, parseExposition, sampleOf } from './exposition.ts';

const opened: WorkerMetrics[] = [];
afterEach(() => {
  for (const metrics of opened.splice(0)) metrics.close();
});

function open(clock: SimulatedClock): WorkerMetrics {
  const metrics = new WorkerMetrics(clock);
  opened.push(metrics);
  return metrics;
}

const textOf = async (...workers: WorkerMetrics[]) =>
  parseExposition((await exposition(await Promise.all(workers.map((worker) => worker.read())))).text);

const samplesIn = (told: Map<string, Family>, name: string) => [...(told.get(name)?.samples.values() ?? [])];

const TOTALS: Totals = {
  ...{ due: 3, scheduled: 4, origin: 0, project: 0, flow: 0, queue: 0, active: 1 },
  ...{ oldestDueMs: 9_000, dead: 2, runs: 5, waiters: 6 },
  storage: { bytes: 4096 },
};

describe('several workers in one process', () => {
  it('are added up, but for what is of the process or of the store', async () => {
    const clock = new SimulatedClock();
    const [first, other] = [open(clock), open(clock)];
    const projectName = (id: number) => `project-${id}`;
    const busy = (...all: [number, number][]) => ({
      ...{ inFlight: 3, workersAlive: undefined, busiestProjects: () => all, readTotals: async () => TOTALS },
      cells: [],
    });
    first.setSources({ engine: busy([1, 2], [2, 1]), projectName, clock, workers: 2 });
    other.setSources({ engine: busy([1, 3]), projectName, clock });
    first.responded(true, 200, 3);
    other.responded(true, 201, 30);
    other.responded(false, 404, 30);
    for (const worker of [first, other]) worker.count(['runsSucceeded']);
    const told = await textOf(first, other);
    expect(sampleOf(told, 'waypost_publish_duration_seconds_bucket{le="0.005"}')).toBe(1);
    expect(sampleOf(told, 'waypost_publish_duration_seconds_bucket{le="+Inf"}')).toBe(2);
    expect(sampleOf(told, 'waypost_publish_duration_seconds_sum')).toBeCloseTo(0.033);
    expect(sampleOf(told, 'waypost_http_requests_total{status="2xx"}')).toBe(2);
    expect(sampleOf(told, 'waypost_http_requests_total{status="4xx"}')).toBe(1);
    expect(sampleOf(told, 'waypost_runs_ended_total{state="success"}')).toBe(2);
    expect(sampleOf(told, 'waypost_in_flight')).toBe(6);
    expect([...(told.get('waypost_in_flight_by_project')?.samples ?? [])]).toEqual([
      ['waypost_in_flight_by_project{project="project-1"}', 5],
      ['waypost_in_flight_by_project{project="project-2"}', 1],
    ]);
    expect(sampleOf(told, 'waypost_workers')).toBe(2);
    expect(sampleOf(told, 'waypost_backlog_messages{state="scheduled"}')).toBe(4);
    expect(sampleOf(told, 'waypost_dlq_entries')).toBe(2);
    expect(sampleOf(told, 'waypost_store_bytes')).toBe(4096);
    const alone = await textOf(first);
    const [cpu = 0, cpuOfOne = 0] = [told, alone].map((each) => sampleOf(each, 'waypost_cpu_seconds_total'));
    expect(cpu).toBeLessThanOrEqual(cpuOfOne);
  });
});

describe('the lag of a first attempt', () => {
  it('is counted from the acceptance of a message that was to go out before', async () => {
    const metrics = open(new SimulatedClock());
    const past = message({ createdAtMs: NOW_MS - 300, notBeforeMs: 1_000 });
    metrics.attempted(claimed({ message: past }), answered(200), NOW_MS);
    expect(sampleOf(await textOf(metrics), 'waypost_first_attempt_lag_seconds_sum')).toBeCloseTo(0.3);
  });
});

const IDLE = { inFlight: 0, workersAlive: 3, busiestProjects: () => [] };

describe('what only the store knows', () => {
  function watched(readTotals: () => Promise<Totals>) {
    const clock = new SimulatedClock();
    const metrics = open(clock);
    metrics.setSources({
      engine: { ...IDLE, cells: [], readTotals },
      projectName: String,
      clock,
      workers: 1,
    });
    return { clock, metrics };
  }

  it('is read when it is asked for, and not again within a few seconds', async () => {
    let reads = 0;
    const { clock, metrics } = watched(async () => {
      reads += 1;
      return TOTALS;
    });
    await clock.advanceBy(60_000);
    expect(reads).toBe(0);
    await Promise.all([metrics.read(), metrics.read()]);
    await clock.advanceBy(3_000);
    const told = await textOf(metrics);
    expect(reads).toBe(1);
    expect(sampleOf(told, 'waypost_sample_age_seconds')).toBe(3);
    expect(sampleOf(told, 'waypost_oldest_due_seconds')).toBe(9);
    expect(sampleOf(told, 'waypost_workers')).toBe(3);
    await clock.advanceBy(1_000);
    expect(sampleOf(await textOf(metrics), 'waypost_sample_age_seconds')).toBe(0);
    expect(reads).toBe(2);
  });

  it('is absent until the store has answered, and then grows old with a store that fails', async () => {
    let answer = (): Promise<Totals> => Promise.reject(new StoreUnavailable('away'));
    const { clock, metrics } = watched(() => answer());
    const before = await textOf(metrics);
    expect(before.get('waypost_backlog_messages')?.samples.size).toBe(0);
    expect(before.get('waypost_sample_age_seconds')?.samples.size).toBe(0);
    answer = async () => TOTALS;
    await metrics.read();
    answer = () => Promise.reject(new StoreUnavailable('away'));
    await clock.advanceBy(10_000);
    const told = await textOf(metrics);
    expect(sampleOf(told, 'waypost_backlog_messages{state="due"}')).toBe(3);
    expect(sampleOf(told, 'waypost_sample_age_seconds')).toBe(10);
  });

  it('is not waited for when the store takes long', async () => {
    const late = Promise.withResolvers<Totals>();
    const { clock, metrics } = watched(() => late.promise);
    const reading = textOf(metrics);
    await clock.advanceBy(1_000);
    expect(sampleOf(await reading, 'waypost_workers')).toBe(3);
    late.resolve(TOTALS);
  });
});

describe('with several cells', () => {
  const away = () => Promise.reject(new StoreUnavailable('away'));

  /** A worker whose cells are as `given` says, but for what is left out. */
  function watched(given: Partial<CellState>[], { clock = new SimulatedClock(), isFirst = true } = {}) {
    const cells = given.map((cell, index): CellState => {
      const state = { inFlight: 0, state: 'open', isServed: true, readTotals: async () => TOTALS } as const;
      return { name: `cell-${index + 1}`, ...state, ...cell };
    });
    const metrics = open(clock);
    const engine = { ...IDLE, cells, readTotals: async () => TOTALS };
    metrics.setSources({ engine, projectName: String, clock, ...(isFirst && { workers: 1 }) });
    return { clock, metrics, cells };
  }

  const samplesOf = (told: Map<string, Family>, name: string) => Object.fromEntries(told.get(name)?.samples ?? []);

  it('tells of each cell that it serves, by its name', async () => {
    const { metrics } = watched([
      { inFlight: 1 },
      { inFlight: 2, readTotals: async () => ({ ...TOTALS, dead: 7, scheduled: 8 }) },
      { isServed: false },
    ]);
    const told = await textOf(metrics);
    expect(samplesOf(told, 'waypost_dlq_entries')).toEqual({
      'waypost_dlq_entries{cell="cell-1"}': 2,
      'waypost_dlq_entries{cell="cell-2"}': 7,
    });
    expect(sampleOf(told, 'waypost_backlog_messages{cell="cell-2",state="scheduled"}')).toBe(8);
    expect(sampleOf(told, 'waypost_sample_age_seconds{cell="cell-2"}')).toBe(0);
    expect(sampleOf(told, 'waypost_in_flight_by_cell{cell="cell-2"}')).toBe(2);
    expect(samplesOf(told, 'waypost_workers')).toEqual({ waypost_workers: 3 });
  });

  it('tells of each cell once, whichever workers of the process serve it', async () => {
    const clock = new SimulatedClock();
    let reads = 0;
    const readTotals = async () => {
      reads += 1;
      return TOTALS;
    };
    const all = [watched([{ readTotals }, { readTotals }], { clock })];
    all.push(watched([{ readTotals }, { readTotals }], { clock, isFirst: false }));
    const told = await textOf(...all.map(({ metrics }) => metrics));
    expect(reads).toBe(2);
    expect(samplesIn(told, 'waypost_runs_active')).toEqual([5, 5]);
  });

  it('where cells are divided among workers, those that the first of a process does not serve are told of by another', async () => {
    const clock = new SimulatedClock();
    const first = watched([{}, {}, { isServed: false }], { clock });
    const other = watched([{}, { isServed: false }, {}], { clock, isFirst: false });
    const told = await textOf(first.metrics, other.metrics);
    expect(samplesIn(told, 'waypost_runs_active')).toEqual([5, 5, 5]);
  });

  it('one that hangs holds up no other: the answer comes within a second, and the next one at once', async () => {
    const hangs = () => new Promise<Totals>(() => {});
    const others = Array.from({ length: 7 }, () => ({}));
    const { clock, metrics } = watched([...others, { readTotals: hangs }, ...others]);
    const reading = textOf(metrics);
    await clock.advanceBy(1_000);
    expect(samplesIn(await reading, 'waypost_dlq_entries')).toHaveLength(14);
    await clock.advanceBy(20_000);
    expect(samplesIn(await textOf(metrics), 'waypost_sample_age_seconds')).toEqual(Array.from({ length: 14 }, () => 0));
  });

  it('reads a few cells at a time, which share the connections to their server with what is delivered', async () => {
    let [under, most] = [0, 0];
    const readTotals = async () => {
      under += 1;
      most = Math.max(most, under);
      await Promise.resolve();
      under -= 1;
      return TOTALS;
    };
    const { metrics } = watched(Array.from({ length: 64 }, () => ({ readTotals })));
    expect(samplesIn(await textOf(metrics), 'waypost_dlq_entries')).toHaveLength(64);
    expect(most).toBe(4);
  });

  it('reads a cell at rest once a minute, and one that is away not at all', async () => {
    const reads = [0, 0];
    const counting = (index: 0 | 1) => async () => {
      reads[index] = (reads[index] ?? 0) + 1;
      return TOTALS;
    };
    const { clock, metrics, cells } = watched([
      { state: 'resting', readTotals: counting(0) },
      { readTotals: counting(1) },
    ]);
    await metrics.read();
    Object.assign(cells[1] ?? {}, { state: 'away' });
    for (let seconds = 0; seconds < 59; seconds += 1) {
      await clock.advanceBy(1_000);
      await metrics.read();
    }
    expect(reads).toEqual([1, 1]);
    await clock.advanceBy(1_000);
    const told = await textOf(metrics);
    expect(reads).toEqual([2, 1]);
    expect(samplesIn(told, 'waypost_sample_age_seconds')).toEqual([0, 60]);
    expect(samplesIn(told, 'waypost_cell_away')).toEqual([0, 1]);
  });

  it('reads each of many cells less often, and every minute at least', async () => {
    const agesAfter = async (cells: number, seconds: number) => {
      const { clock, metrics } = watched(Array.from({ length: cells }, () => ({})));
      await metrics.read();
      await clock.advanceBy(seconds * 1_000);
      return new Set(samplesIn(await textOf(metrics), 'waypost_sample_age_seconds'));
    };
    expect(await agesAfter(16, 15)).toEqual(new Set([15]));
    expect(await agesAfter(16, 16)).toEqual(new Set([0]));
    expect(await agesAfter(100, 59)).toEqual(new Set([59]));
    expect(await agesAfter(100, 60)).toEqual(new Set([0]));
  });

  it('calls a cell away that does not answer, and one that takes too long', async () => {
    const { clock, metrics, cells } = watched([{}, {}, {}]);
    await metrics.read();
    Object.assign(cells[0] ?? {}, { readTotals: away });
    Object.assign(cells[1] ?? {}, { readTotals: () => new Promise(() => {}) });
    await clock.advanceBy(4_000);
    const reading = textOf(metrics);
    await clock.advanceBy(1_000);
    const told = await reading;
    expect(samplesIn(told, 'waypost_cell_away')).toEqual([1, 1, 0]);
    expect(samplesIn(told, 'waypost_sample_age_seconds')).toEqual([5, 5, 1]);
    Object.assign(cells[0] ?? {}, { readTotals: async () => TOTALS });
    await clock.advanceBy(4_000);
    expect(samplesIn(await textOf(metrics), 'waypost_cell_away')).toEqual([0, 1, 0]);
  });

  it('tells nothing more of a cell that it serves no longer', async () => {
    const { metrics, cells } = watched([{}, {}]);
    await metrics.read();
    Object.assign(cells[1] ?? {}, { isServed: false });
    expect(Object.keys(samplesOf(await textOf(metrics), 'waypost_dlq_entries'))).toEqual([
      'waypost_dlq_entries{cell="cell-1"}',
    ]);
  });
});
