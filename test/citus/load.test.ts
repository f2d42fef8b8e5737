/**
 * Workers at every server of Citus, under mixed load with ledgers outside, while workers are killed, the store moves from node
 * to node, and servers crash and restart. Nothing that was acknowledged may be lost.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CONNECTION_FAULTS, type Fault, SERVER_FAULTS, WORKER_FAULTS } from '../cluster/faults.ts';
import { judge } from '../cluster/judge.ts';
import { openWorld, type World } from '../cluster/world.ts';
import { makeStore } from './citus.ts';
import { useCitus } from './shared.ts';

const SEED = Number(process.env['WAYPOST_CLUSTER_SEED'] ?? 20_261_123);
const SCHEMA = 'cell';

const citus = useCitus({ settings: { fsync: 'on' }, hasLinks: true });

const MOVES: Record<string, Fault> = {
  'while the store moves to the other node, and back': async (world) => {
    for (let move = 0; move < 2; move += 1) {
      await citus().move(SCHEMA);
      await world.goOn(40);
    }
  },
  'while Citus empties the node that has the store': async () => {
    await citus().drain(SCHEMA);
  },
  'while a worker is killed in the middle of a move': async (world) => {
    const worker = world.random.choose(world.workers.all);
    const moved = citus().move(SCHEMA);
    await world.goOn(10);
    await worker.end('SIGKILL');
    await moved;
    await worker.start();
  },
};

const SERVERS: Record<string, Fault> = {
  'when the node that has the store is killed, and recovers': async (world) => {
    const node = await citus().placeOf(SCHEMA);
    await node.kill();
    await world.untilAllAreInDoubt();
    await node.start();
  },
  'when the other node is killed, and recovers': async (world) => {
    const place = await citus().placeOf(SCHEMA);
    for (const node of citus().nodes) {
      if (node === place) continue;
      await node.kill();
      await world.goOn(40);
      await node.start();
    }
  },
  'when the coordinator is killed, and recovers': SERVER_FAULTS['is killed, and recovers'],
  'when the coordinator ends all sessions': SERVER_FAULTS['ends all sessions'],
  'when the commit of a server to the node is cut': async (world) => {
    for (const when of ['after', 'before', 'after', 'before'] as const) {
      await (await citus().linkTo(SCHEMA)).cutAtCommit(when);
      await world.goOn(10);
    }
  },
};

describe(`three workers on a Citus (seed ${SEED})`, () => {
  let world: World;

  beforeAll(async () => {
    const { coordinator, nodes } = citus();
    await makeStore(citus(), SCHEMA);
    const [first, ...others] = [coordinator, ...nodes].map((server) => citus().url(SCHEMA, server));
    world = await openWorld({ seed: SEED, cluster: coordinator, databaseUrls: [first ?? '', ...others] });
    await world.begin();
  });
  afterAll(() => world?.close());

  it.each(Object.entries(WORKER_FAULTS).slice(0, 2))('recover when one %s', async (_, fault) => {
    await world.survive(fault);
  });
  it.each(Object.entries(CONNECTION_FAULTS))('recover when connections %s', async (_, fault) => {
    await world.survive(fault);
  });
  it.each(Object.entries({ ...MOVES, ...SERVERS }))('go on %s', async (_, fault) => {
    await world.survive(fault);
  });

  it('have lost nothing, done nothing twice without a reason, and kept every limit and order', async () => {
    await world.untilEnoughHasHappened();
    await world.calmDown();
    const { findings, acked } = await judge(world);
    expect(findings.join('\n')).toBe('');
    expect(acked).toBeGreaterThan(500);
  });
});
