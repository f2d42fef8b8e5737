/** The benchmarks that run with every change of performance. The others: bench.hand.test.ts. */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { measureBacklog } from '../../bench/backlog.ts';
import { measureBefore } from '../../bench/before.ts';
import { compare } from '../../bench/comparison.ts';
import { measureHostile } from '../../bench/hostile.ts';
import { DEFAULT_WORKLOAD } from '../../bench/measure.ts';
import { DEFAULT_OVERLOAD, measureOverload } from '../../bench/overload/measure.ts';
import { overloadTable } from '../../bench/overload/report.ts';
import { shimObstacle } from '../../bench/preload/build.ts';
import { backlogTable, comparisonTable, figureLine, stepsTable } from '../../bench/report.ts';
import { measureTestKit } from '../../bench/test-kit.ts';
import type { Contestant } from '../../bench/workflows/contestant.ts';
import { measureSteps } from '../../bench/workflows/steps.ts';
import { measureWaking } from '../../bench/workflows/waking.ts';
import { startWaypostContestant } from '../../bench/workflows/waypost-runs.ts';
import { expectPositive } from './figures.ts';

// Tiny counts: these tests ask whether the benchmarks count right, never how fast anything is.
const TINY = { ...DEFAULT_WORKLOAD, messages: 100, warmUpMessages: 20, steadyPerSecond: 200, steadySeconds: 0.2 };

/** Where the preloaded library cannot be built nothing delays a sync. */
const SYNC_DELAY_MS = shimObstacle() === undefined ? 1 : 0;

describe('npm run bench -- before', () => {
  it('measures two checkouts in alternation, and counts missing messages', { timeout: 60_000 }, async () => {
    const options = { rounds: 2, messages: 200, warmUpMessages: 100, isPostgres: false };
    const figures = await measureBefore({ ...options, program: fileURLToPath(new URL('../..', import.meta.url)) });
    const [cpu, cpuShare, rate, rateShare, missing] = figures;
    expectPositive({ cpu: cpu?.value ?? 0, before: cpu?.reference?.value ?? 0, share: cpuShare?.value ?? 0 });
    expectPositive({ rate: rate?.value ?? 0, before: rate?.reference?.value ?? 0, share: rateShare?.value ?? 0 });
    expect(missing?.value).toBe(0);
  });
});

describe('npm run bench', () => {
  it.each([
    { peers: 'ordinary', fsyncDelayMs: 0 },
    { peers: 'bare', fsyncDelayMs: SYNC_DELAY_MS },
  ] as const)(
    'sees every message of the relay and of Waypost arrive, once: %j',
    { timeout: 60_000 },
    async ({ peers, fsyncDelayMs }) => {
      const rounds: string[] = [];
      const comparison = await compare({
        ...{ peers, fsyncDelayMs, rounds: 1, workload: TINY },
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
      for (const label of ['delivered per second', 'publish to arrival p50', 'CPU seconds', 'RSS']) {
        expect(table).toContain(label);
      }
      expect(table.includes('1 ms added to each fsync')).toBe(fsyncDelayMs === 1);
    },
  );
});

describe('npm run bench -- hostile', () => {
  it('delivers to responsive endpoints while others hang', { timeout: 60_000 }, async () => {
    const figures = await measureHostile({ attacks: [{ origins: 8, timeout: '1m' }], probeMessages: 10 });
    expect(figures).toContainEqual({ name: 'probes that never arrived', value: 0, unit: 'messages' });
    expect(figures).toContainEqual({ name: 'hanging attempts', value: 8, unit: 'messages' });
    for (const { unit, value, reference } of figures) {
      if (unit === 'ms') expectPositive({ value, ...(reference && { reference: reference.value }) });
    }
  });
});

describe('npm run bench -- overload', () => {
  it('measures the messages of two projects, all of which arrive', { timeout: 60_000 }, async () => {
    const options = { ...DEFAULT_OVERLOAD, connections: [2], rounds: 1, seconds: 1, warmUpMessages: 20 };
    const levels = await measureOverload(options);
    expect(levels).toHaveLength(1);
    for (const { shedPerSecond, otherShed, otherMissing, cores, otherQueuedP99Ms, ...figures } of levels) {
      expect({ shedPerSecond, otherShed, otherMissing }).toEqual({ shedPerSecond: 0, otherShed: 0, otherMissing: 0 });
      expect(cores).toBeGreaterThanOrEqual(0); // as above
      expect(otherQueuedP99Ms).toBeGreaterThanOrEqual(0); // they may arrive before the answer
      expectPositive(figures);
    }
    expect(overloadTable(levels, 'a smoke')).toContain('delivered/s');
  });
});

it('npm run bench -- test-kit: delivers the messages of a year', { timeout: 60_000 }, async () => {
  const figures = await measureTestKit({ messages: 20 });
  expect(figures).toContainEqual({ name: 'messages that never arrived', value: 0, unit: 'messages' });
  expect(figures.map(figureLine).join('\n')).toMatch(/^20 messages over a year: .* ratio /m);
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

describe('npm run bench -- workflow', () => {
  // Without the reference, which would have to be installed.
  it('executes the same runs with the library and with the bare endpoint, and checks the results', {
    timeout: 180_000,
  }, async () => {
    const loads: string[] = [];
    const figures = await measureSteps({
      ...{ rounds: 1, warmUpRuns: 2, runs: 8, stallMs: 60_000 },
      contestants: (['library', 'bare', 'bare, within a call'] as const).map(
        (endpoint) => () => startWaypostContestant(endpoint, endpoint === 'bare, within a call' ? 2 : 1),
      ),
      onLoad: ({ contestant, load }) => loads.push(`${contestant}, ${load}`),
    });
    expect(loads).toEqual([
      'Waypost, @upstash/workflow, 64 concurrent',
      'Waypost, @upstash/workflow, a burst',
      'Waypost, bare endpoint, 64 concurrent',
      'Waypost, bare endpoint, a burst',
      'Waypost, bare endpoint, within a call, 64 concurrent',
      'Waypost, bare endpoint, within a call, a burst',
    ]);
    for (const { runsPerSecond, stepsPerSecond, bytesPerStep } of figures) {
      expectPositive({ runsPerSecond, bytesPerStep });
      expect(stepsPerSecond).toBeCloseTo(3 * runsPerSecond);
    }
    // For the bare endpoint: one for the trigger and one for each step; within a call just one, also with two workers.
    expect(figures.slice(2).map(({ callsPerRun }) => callsPerRun)).toEqual([4, 4, 1, 1]);
    expect(stepsTable(figures, 1)).toContain('calls/run');
  });

  it('rejects runs that end twice or return wrong results', { timeout: 60_000 }, async () => {
    const options = { rounds: 1, warmUpRuns: 1, runs: 1, stallMs: 20_000 };
    const twice = () => contestantOf((number) => [number, number]);
    await expect(measureSteps({ ...options, contestants: [twice] })).rejects.toThrow('run 0 ended twice');
    const wrong = () => contestantOf((number) => [number], 'run 0 returned nothing');
    await expect(measureSteps({ ...options, contestants: [wrong] })).rejects.toThrow('run 0 returned nothing');
  });

  it('wakes all runs that wait for an event', { timeout: 60_000 }, async () => {
    const figures = await measureWaking({ waiters: 100, quietMs: 50, isPostgres: false });
    for (const { unit, name, value } of figures) {
      if (unit === 'runs') expect(value).toBe(0);
      else expectPositive({ [name]: value });
    }
  });
});

/** A contestant within this process; `endsOf` says whose ends a start reports. */
async function contestantOf(endsOf: (number: number) => number[], objection?: string): Promise<Contestant> {
  let onEnded: (number: number) => void = () => undefined;
  return {
    name: 'none',
    serverPid: process.pid,
    endpointPid: process.pid,
    async start(number) {
      for (const ended of endsOf(number)) onEnded(ended);
    },
    listen: (listener) => {
      onEnded = listener;
    },
    traffic: async () => ({ bytes: 0, bodyBytes: [] }),
    async verify() {
      if (objection !== undefined) throw new Error(objection);
    },
    end: async () => undefined,
  };
}
