/** Workers die and freeze, and their connections break in every way that a network knows. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Cluster, startCluster } from '../support/postgres/cluster.ts';
import { CONNECTION_FAULTS, upgradeAndBack, WORKER_FAULTS } from './faults.ts';
import { judge } from './judge.ts';
import { makeNewerProgram } from './newer-program.ts';
import { openWorld, type World } from './world.ts';

// Another number explores other moments; a failure prints the one it had.
const SEED = Number(process.env['WAYPOST_CLUSTER_SEED'] ?? 20_261_121);

describe(`three workers that fail, or are cut off (seed ${SEED})`, () => {
  let cluster: Cluster;
  let world: World;

  beforeAll(async () => {
    cluster = await startCluster({ settings: { fsync: 'on' } });
    world = await openWorld({ seed: SEED, cluster });
    await world.begin();
  });
  afterAll(async () => {
    await world.close();
    await cluster.dispose();
  });

  it.each(Object.entries(WORKER_FAULTS))('go on when one %s', async (_, fault) => {
    await world.survive(fault);
  });
  it.each(Object.entries(CONNECTION_FAULTS))('go on when connections %s', async (_, fault) => {
    await world.survive(fault);
  });
  it('go on when one is upgraded to a schema that has grown, and goes back', async () => {
    const newer = makeNewerProgram(false);
    try {
      await world.survive(upgradeAndBack(newer.folder));
    } finally {
      newer.remove();
    }
  });

  it('have lost nothing, done nothing twice without a reason, and kept every limit and order', async () => {
    await world.calmDown();
    const { findings, verdict, callbacks, lanes, repeats } = await judge(world);
    expect(findings).toEqual([]);
    // A run in which little happened proves little.
    expect(verdict.acked).toBeGreaterThan(500);
    expect(callbacks.taken).toBeGreaterThan(50);
    expect(repeats).toBeGreaterThan(50);
    expect(lanes.most).toEqual({ single: 1, double: 2, slots: 3 });
  });
});
