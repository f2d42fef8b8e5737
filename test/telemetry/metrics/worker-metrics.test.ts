/** What does a worker make of what it hears, and of what several of them tell? */
import { afterEach, describe, expect, it } from 'vitest';
import type { EndedRun } from '../../../src/engine/ports.ts';
import { StoreUnavailable } from '../../../src/engine/store-errors.ts';
import type { Totals } from '../../../src/engine/unfinished.ts';
import { exposition } from '../../../src/telemetry/metrics/exposition.ts';
import { WorkerMetrics } from '../../../src/telemetry/metrics/worker-metrics.ts';
import { SimulatedClock } from '../../support/simulated-clock.ts';
import { parseExposition, sampleOf } from './exposition.ts';

const ENDED: EndedRun = {
  ...{ projectId: 1, id: 'wfr_1', url: 'https://a.example/wf', createdAtMs: 0 },
  config: {
    ...{ dialect: 'upstash', features: [], header: {}, maxRetries: 3 },
    ...{ isKept: true, isRest: false, isUnknownSdk: false },
  },
};

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

const TOTALS: Totals = {
  ...{ due: 3, scheduled: 4, origin: 0, project: 0, flow: 0, queue: 0, active: 1 },
  ...{ dead: 2, runs: 5, waiters: 6 },
  storage: { bytes: 4096 },
};

describe('several workers in one process', () => {
  it('are added up, but for what is of the process or of the store', async () => {
    const clock = new SimulatedClock();
    const [first, other] = [open(clock), open(clock)];
    const store = { backlog: { readTotals: async () => TOTALS }, workers: 2 };
    const projectName = (id: number) => `project-${id}`;
    const busy = (...all: [number, number][]) => ({
      ...{ inFlight: 3, workersAlive: undefined, busiestProjects: () => all },
      cells: [
        { name: 'first', inFlight: 1, isAway: false },
        { name: 'second', inFlight: 2, isAway: true },
      ],
    });
    first.watch({ engine: busy([1, 2], [2, 1]), projectName, clock, store });
    other.watch({ engine: busy([1, 3]), projectName, clock });
    first.answered(true, 200, 3);
    other.answered(true, 201, 30);
    other.answered(false, 404, 30);
    for (const worker of [first, other]) worker.runEnded(ENDED, 'RUN_SUCCESS');
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
    expect(sampleOf(told, 'waypost_in_flight_by_cell{cell="second"}')).toBe(4);
    expect([...(told.get('waypost_cell_away')?.samples ?? [])]).toEqual([
      ['waypost_cell_away{cell="first"}', 0],
      ['waypost_cell_away{cell="second"}', 1],
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

describe('what only the store knows', () => {
  function watched(readTotals: () => Promise<Totals>) {
    const clock = new SimulatedClock();
    const metrics = open(clock);
    metrics.watch({
      engine: { inFlight: 0, workersAlive: 3, busiestProjects: () => [], cells: [] },
      projectName: String,
      clock,
      store: { backlog: { readTotals }, workers: 1 },
    });
    return { clock, metrics };
  }

  it('is read when it is asked for, and not again within a few seconds', async () => {
    let reads = 0;
    const { clock, metrics } = watched(async () => {
      reads += 1;
      return { ...TOTALS, oldestDueAtMs: clock.nowMs() - 9_000 };
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
