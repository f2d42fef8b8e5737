import { describe, expect, it } from 'vitest';
import { Cores, Disk, Thread } from '../../bench/capacity/machine.ts';
import { costsIn } from '../../bench/capacity/measure.ts';
import { type Costs, type SimulatedFigures, simulate } from '../../bench/capacity/model.ts';
import type { CostFigures } from '../../bench/message-cost.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';

const COSTS: Costs = {
  ...{ workerMessage: 0.1, workerBatch: 0.4, postgresMessage: 0.03, postgresBatch: 0.3 },
  ...{ loadMessage: 0.05, commitMs: 0.6 },
};

describe('the model of capacity', () => {
  it('derives the costs of a message and of a batch from a burst and a low rate', async () => {
    const shape = { cores: 8, workers: 1, cells: 1, isLoadLocal: false, costs: COSTS };
    const [burst, low] = [await simulate({ ...shape, concurrent: 64 }), await simulate({ ...shape, perSecond: 200 })];
    const found = costsIn([costOf(burst, 0), costOf(low, 200)]);
    for (const name of ['workerMessage', 'workerBatch', 'postgresMessage', 'postgresBatch'] as const) {
      expect(found[name]).toBeGreaterThan(COSTS[name] * 0.98);
      expect(found[name]).toBeLessThan(COSTS[name] * 1.02);
    }
  });

  it('delivers messages as fast as they are published at a rate that one worker can handle', async () => {
    const { perSecond, busiest } = await simulate({
      ...{ cores: 8, workers: 2, cells: 2, perSecond: 1_000, isLoadLocal: false, costs: COSTS },
    });
    expect(perSecond).toBeGreaterThan(900);
    expect(perSecond).toBeLessThan(1_100);
    expect(busiest).toBeLessThan(0.5);
  });

  it('has smaller batches with more cells, and the same cost per message', async () => {
    const shape = { cores: 8, workers: 1, perSecond: 2_000, isLoadLocal: false, costs: COSTS };
    const [one, four] = [await simulate({ ...shape, cells: 1 }), await simulate({ ...shape, cells: 4 })];
    expect(four.batches).toBeGreaterThan(one.batches);
    const ofMessages = ({ workerCpuMs, batches }: SimulatedFigures) => workerCpuMs - batches * COSTS.workerBatch;
    expect(ofMessages(four)).toBeCloseTo(1_000 * COSTS.workerMessage, -1);
  });
});

describe('a simulated machine', () => {
  it('runs at most one task per core, and one task per thread, at a time', async () => {
    const clock = new SimulatedClock(undefined, 0.001);
    const cores = new Cores(clock, 2);
    const [first, second] = [new Thread(cores), new Thread(cores)];
    const ends: number[] = [];
    for (const thread of [first, first, second]) void thread.run(3).then(() => ends.push(clock.elapsedMs));
    await clock.runUntilIdle(100);
    expect(ends).toEqual([3, 3, 6]);
    for (let nth = 0; nth < 4; nth += 1) void cores.run(1).then(() => ends.push(clock.elapsedMs));
    await clock.runUntilIdle(100);
    expect(ends.slice(3).at(-1)).toBe(8);
  });

  it('shares one sync among callers that arrive during another', async () => {
    const clock = new SimulatedClock(undefined, 0.001);
    const disk = new Disk(clock, 1);
    const ends: number[] = [];
    for (let nth = 0; nth < 3; nth += 1) void disk.sync().then(() => ends.push(clock.elapsedMs));
    await clock.runUntilIdle(100);
    expect(ends).toEqual([1, 2, 2]);
    expect(disk.syncs).toBe(2);
  });
});

function costOf(simulated: SimulatedFigures, perSecond: number): CostFigures {
  const { workerCpuMs: waypostCpuMs, postgresCpuMs, batches, perSecond: deliveredPerSecond } = simulated;
  return {
    ...{ database: 'PostgreSQL', workers: 1, perSecond, deliveredPerSecond, waypostCpuMs, postgresCpuMs, batches },
    ...{ loadCpuMs: 0, commandsPerBatch: 0, arrivalP50Ms: 1, arrivalP99Ms: 1, missing: 0 },
  };
}
