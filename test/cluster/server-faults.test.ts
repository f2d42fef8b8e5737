/** PostgreSQL fails in every way that an operator will see, under several workers; with statistics that never were right. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Cluster, startCluster } from '../support/postgres/cluster.ts';
import { outage, SERVER_FAULTS } from './faults.ts';
import { judge } from './judge.ts';
import { openWorld, type World } from './world.ts';

// Another number explores other moments; a failure prints the one it had.
const SEED = Number(process.env['WAYPOST_CLUSTER_SEED'] ?? 20_261_121);
const OUTAGE_MS = 5_000;

describe(`three workers on a PostgreSQL that fails (seed ${SEED})`, () => {
  let cluster: Cluster;
  let world: World;

  beforeAll(async () => {
    cluster = await startCluster({ settings: { fsync: 'on', autovacuum: 'off', max_connections: '40' } });
    world = await openWorld({ seed: SEED, cluster });
    // From now on the planner believes that the tables are as good as empty.
    await world.query('analyze');
    await world.begin();
  });
  afterAll(async () => {
    await world.close();
    await cluster.dispose();
  });

  it.each(Object.entries({ ...SERVER_FAULTS, [`is gone for ${OUTAGE_MS / 1000} s`]: outage(OUTAGE_MS) }))(
    'go on when it %s',
    async (_, fault) => {
      await world.survive(fault);
    },
  );

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
