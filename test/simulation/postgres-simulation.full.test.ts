/** Runs the simulated world on a real PostgreSQL: a seed determines time, network and faults, but not the order of transactions. */
import { expect, test } from 'vitest';
import { PostgresDriver } from '../../src/store/drivers/postgres/driver.ts';
import { systemClock } from '../../src/system/system.ts';
import { migratedDatabase } from '../support/postgres/shared.ts';
import { type SimulationOptions, type SimulationReport, simulate } from './simulate.ts';
import { simulateWorkflows } from './workflow-simulate.ts';

type Play = (options: SimulationOptions) => Promise<SimulationReport>;

async function violationsOf(play: Play, options: Omit<SimulationOptions, 'driver'>): Promise<string[]> {
  const driver = new PostgresDriver({
    url: await migratedDatabase(),
    connectionsMax: 12,
    timeoutMs: 30_000,
    prepares: true,
    clock: systemClock,
  });
  const { violations } = await play({ ...options, driver });
  await driver.close();
  return violations.map(({ promise, text }) => `seed ${options.seed}: ${promise}: ${text}`);
}

test.for([101])('one process keeps its promises, seed %i', async (seed) => {
  expect(await violationsOf(simulate, { seed, steps: 60 })).toEqual([]);
});

test.for([201])('three workers with wrong clocks keep theirs, seed %i', async (seed) => {
  expect(await violationsOf(simulate, { seed, steps: 60, workers: 3 })).toEqual([]);
});

test.for([301])('workflows come to what their programs say, among three workers, seed %i', async (seed) => {
  expect(await violationsOf(simulateWorkflows, { seed, steps: 15, workers: 3 })).toEqual([]);
});
