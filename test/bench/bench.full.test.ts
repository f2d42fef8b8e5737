import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { measureBacklog } from '../../bench/backlog.ts';
import { measureBefore } from '../../bench/before.ts';
import { compare } from '../../bench/comparison.ts';
import { CONSOLE_PARTS, measureConsole } from '../../bench/console/measure.ts';
import { measureHostile } from '../../bench/hostile.ts';
import { measureLanes } from '../../bench/lanes.ts';
import { DEFAULT_WORKLOAD } from '../../bench/measure.ts';
import { measureMetrics } from '../../bench/metrics.ts';
import { DEFAULT_OVERLOAD, measureOverload } from '../../bench/overload/measure.ts';
import { overloadTable } from '../../bench/overload/report.ts';
import { shimObstacle } from '../../bench/preload/build.ts';
import { backlogTable, comparisonTable, figureLine, stepsTable } from '../../bench/report.ts';
import { measureTestKit } from '../../bench/test-kit.ts';
import { measureTraces } from '../../bench/traces.ts';
import type { Contestant } from '../../bench/workflows/contestant.ts';
import { measureGaps, measureLongRuns } from '../../bench/workflows/long-run.ts';
import { measureSleeping } from '../../bench/workflows/sleeping.ts';
import { measureSteps } from '../../bench/workflows/steps.ts';
import { measureWaking } from '../../bench/workflows/waking.ts';
import { startWaypostContestant } from '../../bench/workflows/waypost-runs.ts';
import { browserObstacle } from '../console/support/visit.ts';

// Tiny counts: these tests ask whether the benchmarks count right, never how fast anything is.
const TINY = { ...DEFAULT_WORKLOAD, messages: 100, warmUpMessages: 20, steadyPerSecond: 200, steadySeconds: 0.2 };

function expectPositive(figures: Record<string, number>): void {
  for (const [name, figure] of Object.entries(figures)) {
    expect(figure, name).toSatisfy((value: number) => Number.isFinite(value) && value > 0);
  }
}

/** Where the preloaded library cannot be built nothing delays a sync. */
const SYNC_DELAY_MS = shimObstacle() === undefined ? 1 : 0;

describe('npm run bench -- traces', () => {
  it('measures a server that is traced beside one that is not, and that all spans arrive', {
    timeout: 60_000,
  }, async () => {
    const rounds: string[] = [];
    const figures = await measureTraces({
      ...{ rounds: 1, messages: 200, warmUpMessages: 100 },
      onRound: (figure) => rounds.push(figureLine(figure)),
    });
    expect(rounds).toEqual([expect.stringMatching(/^delivered of a burst, traced: .* untraced: .*ratio/)]);
    const [rate, , , dropped, missing] = figures;
    expectPositive({ traced: rate?.value ?? 0, untraced: rate?.beside?.value ?? 0 });
    expect([dropped?.value, missing?.value]).toEqual([0, 0]);
  });
});

describe('npm run bench -- before', () => {
  it('measures two checkouts in turns, and that all messages arrive', { timeout: 60_000 }, async () => {
    const options = { rounds: 2, messages: 200, warmUpMessages: 100, isPostgres: false };
    const figures = await measureBefore({ ...options, program: fileURLToPath(new URL('../..', import.meta.url)) });
    const [cpu, cpuShare, rate, rateShare, missing] = figures;
    expectPositive({ cpu: cpu?.value ?? 0, before: cpu?.beside?.value ?? 0, share: cpuShare?.value ?? 0 });
    expectPositive({ rate: rate?.value ?? 0, before: rate?.beside?.value ?? 0, share: rateShare?.value ?? 0 });
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
      for (const label of ['delivered a second', 'publish to arrival p50', 'CPU seconds', 'RSS']) {
        expect(table).toContain(label);
      }
      expect(table.includes('1 ms added to each fsync')).toBe(fsyncDelayMs === 1);
    },
  );
});

describe('npm run bench -- hostile', () => {
  it('delivers what has somebody who answers, beside endpoints that hang', { timeout: 60_000 }, async () => {
    const figures = await measureHostile({ attacks: [{ origins: 8, timeout: '1m' }], probeMessages: 10 });
    expect(figures).toContainEqual({ name: 'probes that never arrived', value: 0, unit: 'messages' });
    expect(figures).toContainEqual({ name: 'attempts that hang at a time', value: 8, unit: 'messages' });
    for (const { unit, value, beside } of figures) {
      if (unit === 'ms') expectPositive({ value, ...(beside && { beside: beside.value }) });
    }
  });
});

describe('npm run bench -- overload', () => {
  it('sees what is published arrive, and the messages of another project beside it', { timeout: 60_000 }, async () => {
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

describe('npm run bench -- lanes', () => {
  it('delivers what it measures, once, and compares each figure with one of the same run', {
    timeout: 60_000,
  }, async () => {
    const figures = await measureLanes({
      ...{ queueMessages: 10, blockedMessages: 20, probeMessages: 20, keys: 10, queues: 5 },
      ...{ schedules: 0, cancelledMessages: 100, quietMs: 50 },
    });
    for (const { unit, value, beside } of figures) {
      if (unit === 'messages') expect(value).toBe(0);
      if (beside) expectPositive({ value, beside: beside.value });
    }
    const lines = figures.map(figureLine).join('\n');
    for (const text of ['queue of parallelism 1', 'due messages of closed ones', 'RSS']) {
      expect(lines).toContain(text);
    }
    // Those that are published meanwhile, and wait for a busy machine, are cancelled with the others.
    const [, cancelled] = /while (\d+) messages are cancelled/.exec(lines) ?? [];
    expect(Number(cancelled)).toBeGreaterThanOrEqual(100);
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

describe('npm run bench -- metrics', () => {
  it('stores, asks, and reports each figure', { timeout: 60_000 }, async () => {
    const figures = await measureMetrics({ messages: 200, keys: 10, rounds: 1 });
    expect(figures).toHaveLength(6);
    for (const { name, value } of figures) expectPositive({ [name]: value });
  });
});

describe.skipIf(browserObstacle() !== undefined)('npm run bench -- console', () => {
  it('reads each list, scrolls, clicks while entries come, and reports each figure', { timeout: 120_000 }, async () => {
    const figures = await measureConsole({
      parts: CONSOLE_PARTS,
      ...{ messages: 300, runs: 20, pages: 3, scrolledRows: 200 },
      ...{ liveSeconds: 1, burstMessages: 100, rounds: 1, idleSeconds: 0.2, quietMs: 50 },
    });
    for (const { unit, name, value } of figures) {
      if (unit === '%')
        expect(value, name).toBeGreaterThanOrEqual(0); // counted in ticks of 10 ms
      else expectPositive({ [name]: value });
    }
    const lines = figures.map(figureLine).join('\n');
    for (const text of ['a page of: runs', 'over the wire', '200 messages', 'a click', 'live stream', 'overview']) {
      expect(lines).toContain(text);
    }
  });
});

describe('npm run bench -- workflow', () => {
  // Without the reference, which would have to be installed.
  it('executes the same runs with the library and with the bare endpoint, and checks what they return', {
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
      'Waypost, @upstash/workflow, 64 under way',
      'Waypost, @upstash/workflow, a burst',
      'Waypost, bare endpoint, 64 under way',
      'Waypost, bare endpoint, a burst',
      'Waypost, bare endpoint, within a call, 64 under way',
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

  it('refuses to report on runs that end twice, or return what they ought not to', { timeout: 60_000 }, async () => {
    const options = { rounds: 1, warmUpRuns: 1, runs: 1, stallMs: 20_000 };
    const twice = () => contestantOf((number) => [number, number]);
    await expect(measureSteps({ ...options, contestants: [twice] })).rejects.toThrow('has ended twice');
    const wrong = () => contestantOf((number) => [number], 'run 0 returned nothing');
    await expect(measureSteps({ ...options, contestants: [wrong] })).rejects.toThrow('run 0 returned nothing');
  });

  it('shows how the bytes of a run grow with its steps', { timeout: 60_000 }, async () => {
    const figures = await measureLongRuns(
      'library',
      [
        { steps: 10, resultLength: 10 },
        { steps: 40, resultLength: 10 },
      ],
      1,
    );
    const [few, many] = figures.filter(({ name }) => name.endsWith('delivered bodies, a step'));
    // About three and a half; about half of it where the last delivery of the run before counts with the first.
    expect((many?.value ?? 0) / (few?.value ?? 0)).toBeGreaterThan(1.1);
    const empty = figures.filter(({ name }) => name.endsWith('an empty body'));
    expect(empty.map(({ value }) => value)).toEqual([0, 0]);
  });

  it('shows how long it takes from one step to the next', { timeout: 60_000 }, async () => {
    for (const { name, value } of await measureGaps('own', 20, 1)) expectPositive({ [name]: value });
  });

  it('wakes all that sleep until a time, after a restart', { timeout: 60_000 }, async () => {
    const figures = await measureSleeping({ runs: 200, waking: 20, leadS: 5, quietMs: 50 });
    for (const { name, value } of figures) expectPositive({ [name]: value });
  });

  it('wakes all that wait for an event', { timeout: 60_000 }, async () => {
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
