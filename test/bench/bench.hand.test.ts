/** The benchmarks that bench.full.test.ts omits. */
import { describe, expect, it } from 'vitest';
import { CONSOLE_PARTS, measureConsole } from '../../bench/console/measure.ts';
import { measureLanes } from '../../bench/lanes.ts';
import { costTable, measureMessageCost } from '../../bench/message-cost.ts';
import { measureMetrics } from '../../bench/metrics.ts';
import { figureLine } from '../../bench/report.ts';
import { measureTraces } from '../../bench/traces.ts';
import { measureGaps, measureLongRuns } from '../../bench/workflows/long-run.ts';
import { measureSleeping } from '../../bench/workflows/sleeping.ts';
import { browserObstacle } from '../console/support/visit.ts';
import { expectPositive } from './figures.ts';

// Tiny counts: these tests ask whether the benchmarks count right, never how fast anything is.
describe('npm run bench -- traces', () => {
  it('compares servers with and without traces, and counts dropped spans', {
    timeout: 60_000,
  }, async () => {
    const rounds: string[] = [];
    const figures = await measureTraces({
      ...{ rounds: 1, messages: 200, warmUpMessages: 100 },
      onRound: (figure) => rounds.push(figureLine(figure)),
    });
    expect(rounds).toEqual([expect.stringMatching(/^delivered of a burst, traced: .* untraced: .*ratio/)]);
    const [rate, , , dropped, missing] = figures;
    expectPositive({ traced: rate?.value ?? 0, untraced: rate?.reference?.value ?? 0 });
    expect([dropped?.value, missing?.value]).toEqual([0, 0]);
  });
});

describe('npm run bench -- lanes', () => {
  it('delivers every message once, and compares each figure with a reference of the same run', {
    timeout: 60_000,
  }, async () => {
    const figures = await measureLanes({
      ...{ queueMessages: 10, blockedMessages: 20, probeMessages: 20, keys: 10, queues: 5 },
      ...{ schedules: 0, cancelledMessages: 100, quietMs: 50 },
    });
    for (const { unit, value, reference } of figures) {
      if (unit === 'messages') expect(value).toBe(0);
      if (reference) expectPositive({ value, reference: reference.value });
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

describe('npm run bench -- metrics', () => {
  it('fills the store, requests metrics, and reports each figure', { timeout: 60_000 }, async () => {
    const figures = await measureMetrics({ messages: 200, keys: 10, rounds: 1 });
    expect(figures).toHaveLength(6);
    for (const { name, value } of figures) expectPositive({ [name]: value });
  });
});

describe.skipIf(browserObstacle() !== undefined)('npm run bench -- console', () => {
  it('reads each list, scrolls, clicks during a live view, and reports each figure', { timeout: 120_000 }, async () => {
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
  it('reports the traffic of a long run', { timeout: 60_000 }, async () => {
    const figures = await measureLongRuns(
      'library',
      [
        { steps: 10, resultLength: 10 },
        { steps: 40, resultLength: 10 },
      ],
      1,
    );
    const [few, many] = figures.filter(({ name }) => name.endsWith('delivered bodies per step'));
    // About three and a half; about half of it where the last delivery of the run before counts with the first.
    expect((many?.value ?? 0) / (few?.value ?? 0)).toBeGreaterThan(1.1);
    const empty = figures.filter(({ name }) => name.endsWith('an empty body'));
    expect(empty.map(({ value }) => value)).toEqual([0, 0]);
  });

  it('reports the time between two steps', { timeout: 60_000 }, async () => {
    for (const { name, value } of await measureGaps('own', 20, 1)) expectPositive({ [name]: value });
  });

  it('wakes all sleeping runs at their time after a restart', { timeout: 60_000 }, async () => {
    const figures = await measureSleeping({ runs: 200, waking: 20, wakeAfterS: 5, quietMs: 50 });
    for (const { name, value } of figures) expectPositive({ [name]: value });
  });
});

describe('npm run bench -- postgres', () => {
  it('delivers every message with each number of workers, and counts committed batches', {
    timeout: 60_000,
  }, async () => {
    const figures = await measureMessageCost({
      ...{ databases: ['SQLite', 'PostgreSQL'], workers: [2], rates: [200, 0], rounds: 1 },
      ...{ seconds: 0.5, burstMessages: 100, warmUpMessages: 50, limitMs: 20_000 },
    });
    expect(figures.map(({ database }) => database)).toEqual(['SQLite', 'SQLite', 'PostgreSQL', 'PostgreSQL']);
    for (const { missing, batches, commandsPerBatch, arrivalP50Ms, deliveredPerSecond } of figures) {
      expect(missing).toBe(0);
      expect(arrivalP50Ms).toBeGreaterThan(0);
      expect(deliveredPerSecond).toBeGreaterThan(0);
      expect(commandsPerBatch).toBeGreaterThanOrEqual(1);
      // A message is accepted and settled: two commands, and numbers are reserved now and then.
      const commands = Math.round(batches * commandsPerBatch);
      expect(commands).toBeGreaterThanOrEqual(2_000);
      expect(commands).toBeLessThan(3_000);
    }
    expect(costTable(figures)).toContain('PostgreSQL, 200/s, 2 workers');
  });
});
