/**
 * Workers crash and freeze, connections break in all ways of a network, PostgreSQL fails in all ways that an operator can
 * expect, and planner statistics are wrong. One world goes through all faults, and is checked once at the end.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Cluster, startCluster } from '../support/postgres/cluster.ts';
import { CONNECTION_FAULTS, outage, SERVER_FAULTS, upgradeAndBack, WORKER_FAULTS } from './faults.ts';
import { judge } from './judge.ts';
import { makeNewerProgram } from './newer-program.ts';
import { openWorld, type World } from './world.ts';

// Another seed tests other moments. A failure prints its seed.
const SEED = Number(process.env['WAYPOST_CLUSTER_SEED'] ?? 20_261_121);

describe(`three workers on one PostgreSQL (seed ${SEED})`, () => {
  let cluster: Cluster;
  let world: World;

  beforeAll(async () => {
    cluster = await startCluster({ settings: { fsync: 'on', autovacuum: 'off', max_connections: '40' } });
    world = await openWorld({ seed: SEED, cluster });
    // From now on the planner assumes that the tables are almost empty.
    await world.query('analyze');
    await world.begin();
  });
  afterAll(async () => {
    await world.close();
    await cluster.dispose();
  });

  // Workers first, so that the claims of dead workers are released before the final checks.
  it.each(Object.entries(WORKER_FAULTS))('recover when one %s', async (_, fault) => {
    await world.survive(fault);
  });
  it.each(Object.entries(CONNECTION_FAULTS))('recover when connections %s', async (_, fault) => {
    await world.survive(fault);
  });
  it.each(Object.entries({ ...SERVER_FAULTS, 'is down until each of them has reported it': outage(0) }))(
    'recover when PostgreSQL %s',
    async (_, fault) => {
      await world.survive(fault);
    },
  );
  it('run in both versions at once when one is upgraded to a compatible schema, and then downgraded', async () => {
    const newer = makeNewerProgram(false);
    try {
      await world.survive(upgradeAndBack(newer.folder));
    } finally {
      newer.remove();
    }
  });

  it('have lost and duplicated nothing, and kept every limit and order', async () => {
    await world.untilEnoughHasHappened();
    await world.calmDown();
    expect((await judge(world)).findings.join('\n')).toBe('');
  });
});
