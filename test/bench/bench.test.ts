import { describe, expect, it } from 'vitest';
import { measureBacklog } from '../../bench/backlog.ts';
import { compare } from '../../bench/comparison.ts';
import { measureLanes } from '../../bench/lanes.ts';
import { DEFAULT_WORKLOAD } from '../../bench/measure.ts';
import { shimObstacle } from '../../bench/preload/build.ts';
import { backlogTable, comparisonTable, figureLine } from '../../bench/report.ts';

// Tiny counts: these tests ask whether the benchmarks count right, never how fast anything is.
const TINY = { ...DEFAULT_WORKLOAD, messages: 200, warmUpMessages: 50, steadyPerSecond: 200, steadySeconds: 0.5 };

function expectPositive(figures: Record<string, number>): void {
  for (const [name, figure] of Object.entries(figures)) {
    expect(figure, name).toSatisfy((value: number) => Number.isFinite(value) && value > 0);
  }
}

describe('npm run bench', () => {
  it.each(['ordinary', 'bare'] as const)(
    'sees every message of the relay and of Waypost arrive, once, between %s peers',
    {
      timeout: 60_000,
    },
    async (peers) => {
      const rounds: string[] = [];
      const comparison = await compare({
        peers,
        rounds: 1,
        fsyncDelayMs: 0,
        workload: TINY,
        onRound: (name) => rounds.push(name),
      });
      expect(rounds).toEqual(['relay', 'waypost']);
      for (const { missing, repeated, cpuSecondsPerThousand, ...figures } of [comparison.relay, comparison.waypost]) {
        expect({ missing, repeated }).toEqual({ missing: 0, repeated: 0 });
        // Counted in ticks of 10 ms: so short a run may cost none.
        expect(cpuSecondsPerThousand).toBeGreaterThanOrEqual(0);
        expectPositive(figures);
      }
      expect(comparison.ratio.throughputPerSecond).toBeCloseTo(
        comparison.waypost.throughputPerSecond / comparison.relay.throughputPerSecond,
      );
      const table = comparisonTable(comparison);
      for (const label of ['delivered a second', 'publish to arrival p50', 'CPU seconds', 'RSS']) {
        expect(table).toContain(label);
      }
    },
  );

  it.skipIf(shimObstacle() !== undefined)(
    'delivers everything, too, when each sync takes a millisecond longer',
    { timeout: 60_000 },
    async () => {
      const comparison = await compare({ peers: 'bare', rounds: 1, fsyncDelayMs: 1, workload: TINY });
      expect(comparison.waypost).toMatchObject({ missing: 0, repeated: 0 });
      expect(comparisonTable(comparison)).toContain('1 ms added to each fsync');
    },
  );
});

describe('npm run bench -- lanes', () => {
  it('delivers what it measures, once, and compares each figure with one of the same run', {
    timeout: 60_000,
  }, async () => {
    const figures = await measureLanes({
      ...{ queueMessages: 30, blockedMessages: 40, probeMessages: 40, keys: 20, queues: 5 },
      ...{ schedules: 0, cancelledMessages: 200, quietMs: 100 },
    });
    for (const { unit, value, beside } of figures) {
      if (unit === 'messages') expect(value).toBe(0);
      if (beside) expectPositive({ value, beside: beside.value });
    }
    const lines = figures.map(figureLine).join('\n');
    for (const text of [
      'queue of parallelism 1',
      'due messages of closed ones',
      'while 200 messages are cancelled',
      'RSS',
    ]) {
      expect(lines).toContain(text);
    }
  });
});

describe('npm run bench -- backlog', () => {
  it('stores the delayed messages, delivers the probes, and reports each figure', { timeout: 60_000 }, async () => {
    const report = await measureBacklog({
      levels: [30, 300],
      batchMessages: 50,
      probeMessages: 60,
      quietMs: 50,
      idleSeconds: 0.2,
    });
    expect(report.levels.map((level) => level.stored)).toEqual([0, 30, 300]);
    for (const { stored: _stored, missing, ...figures } of report.levels) {
      expect(missing).toBe(0);
      expectPositive(figures);
    }
    const { levels: _levels, idleCpuPercent, ...figures } = report;
    expect(idleCpuPercent).toBeGreaterThanOrEqual(0);
    expectPositive(figures);
    expect(backlogTable(report)).toContain('start to ready, all stored');
  });
});
