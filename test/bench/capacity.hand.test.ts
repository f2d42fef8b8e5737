import { describe, expect, it } from 'vitest';
import { Cores, Disk, Thread } from '../../bench/capacity/machine.ts';
import { costsIn } from '../../bench/capacity/measure.ts';
import { type Costs, type Played, play } from '../../bench/capacity/model.ts';
import type { PriceFigures } from '../../bench/worker-price.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';

const COSTS: Costs = {
  ...{ workerMessage: 0.1, workerBatch: 0.4, postgresMessage: 0.03, postgresBatch: 0.3 },
  ...{ loadMessage: 0.05, commitMs: 0.6 },
};

describe('the model of capacity', () => {
  it('finds what a message and a batch cost from a burst and from calm', async () => {
    const shape = { cores: 8, workers: 1, cells: 1, isLoadHere: false, costs: COSTS };
    const [burst, calm] = [await play({ ...shape, underWay: 64 }), await play({ ...shape, perSecond: 200 })];
    const found = costsIn([priceOf(burst, 0), priceOf(calm, 200)]);
    for (const name of ['workerMessage', 'workerBatch', 'postgresMessage', 'postgresBatch'] as const) {
      expect(found[name]).toBeGreaterThan(COSTS[name] * 0.98);
      expect(found[name]).toBeLessThan(COSTS[name] * 1.02);
    }
  });

  it('delivers as many as are published at a rate that a worker carries', async () => {
    const { perSecond, busiest } = await play({
      ...{ cores: 8, workers: 2, cells: 2, perSecond: 1_000, isLoadHere: false, costs: COSTS },
    });
    expect(perSecond).toBeGreaterThan(900);
    expect(perSecond).toBeLessThan(1_100);
    expect(busiest).toBeLessThan(0.5);
  });

  it('has smaller batches with more cells, and the same work in each', async () => {
    const shape = { cores: 8, workers: 1, perSecond: 2_000, isLoadHere: false, costs: COSTS };
    const [one, four] = [await play({ ...shape, cells: 1 }), await play({ ...shape, cells: 4 })];
    expect(four.batches).toBeGreaterThan(one.batches);
    const ofMessages = ({ workerCpuMs, batches }: Played) => workerCpuMs - batches * COSTS.workerBatch;
    expect(ofMessages(four)).toBeCloseTo(1_000 * COSTS.workerMessage, -1);
  });
});

describe('a simulated machine', () => {
  it('does no more at a time than it has cores, and a thread one thing', async () => {
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

  it('lets those share a sync who come while another is under way', async () => {
    const clock = new SimulatedClock(undefined, 0.001);
    const disk = new Disk(clock, 1);
    const ends: number[] = [];
    for (let nth = 0; nth < 3; nth += 1) void disk.sync().then(() => ends.push(clock.elapsedMs));
    await clock.runUntilIdle(100);
    expect(ends).toEqual([1, 2, 2]);
    expect(disk.syncs).toBe(2);
  });
});

function priceOf(played: Played, perSecond: number): PriceFigures {
  const { workerCpuMs: waypostCpuMs, postgresCpuMs, batches, perSecond: deliveredPerSecond } = played;
  return {
    ...{ database: 'PostgreSQL', workers: 1, perSecond, deliveredPerSecond, waypostCpuMs, postgresCpuMs, batches },
    ...{ loadCpuMs: 0, commandsPerBatch: 0, arrivalP50Ms: 1, arrivalP99Ms: 1, missing: 0 },
  };
}
