/**
 * Cells that are schemas on Citus, workers at the coordinator and at a node, and a project in each cell under mixed load with
 * ledgers outside, while projects move between the cells, Citus moves cells between the nodes, and a node is killed.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { judge } from '../cells/proof/judge.ts';
import { MOVE_TRIALS, type Trial } from '../cells/proof/trials.ts';
import { type Cell, type CellsWorld, cellOf, openCellsWorld, urlOf } from '../cells/proof/world.ts';
import type { Cluster } from '../support/postgres/cluster.ts';
import { giveCommand } from '../support/waypost-command.ts';
import { useCitus } from './shared.ts';

const SEED = Number(process.env['CELLS_PROOF_SEED'] ?? 20_261_124);
const CELLS = 4;
const DATABASE = 'postgres';

const citus = useCitus();

const CITUS_TRIALS: Readonly<Record<string, Trial>> = {
  'while Citus moves a cell to the other node, and a project leaves it': async (world) => {
    const project = world.random.choose(world.projects);
    const cell = world.homeOf(project);
    await world.survive([project], async () => {
      await project.during(async () => {
        const to = world.cellFor(project);
        await world.mover.begin(project.name, to.name, 'copying');
        await citus().move(cell.schema);
        await world.mover.untilMoved(project.name, to.name);
      });
      await world.readHomes();
    });
  },
  'while a cell is emptied, and filled again': async (world) => {
    const cell = world.homeOf(world.random.choose(world.projects));
    const give = async (...args: string[]) => {
      const { code, stderr } = await giveCommand(['cells', ...args], { ...world.env });
      if (code !== 0) throw new Error(`waypost cells ${args.join(' ')}: ${stderr}`);
    };
    await world.survive(world.projects, async () => {
      await give('drain', cell.name);
      const leaving = world.projects.filter((project) => world.homeOf(project) === cell);
      await give('balance', '--yes');
      await world.readHomes();
      expect(world.projects.filter((project) => world.homeOf(project) === cell)).toEqual([]);
      await give('undrain', cell.name);
      for (const project of leaving) await world.move(project, cell);
    });
  },
  'when the node of some cells is killed, and recovers': async (world) => {
    const [own, other] = citus().nodes as [Cluster, Cluster];
    const [first, ...others] = world.cells as [Cell, ...Cell[]];
    // The third worker is connected to the first node, and the directory is to be there for all.
    await bring(first, own);
    await bring(
      world.homeOf(world.random.choose(world.projects.filter((each) => world.homeOf(each) !== first))),
      other,
    );
    const places = await Promise.all(others.map(async (cell) => ({ cell, node: await citus().placeOf(cell.schema) })));
    const away = places.filter(({ node }) => node === other).map(({ cell }) => cell);
    const struck = world.projects.filter((project) => away.includes(world.homeOf(project)));
    await world.survive(struck, async () => {
      await other.kill();
      await world.unharmed(world.others(struck), async () => {
        await world.refused(struck);
        await world.readyWithout(away);
        await world.alive(world.others(struck));
      });
      await other.start();
      await world.readyWithout([]);
    });
  },
};

async function bring({ schema }: Cell, node: Cluster): Promise<void> {
  if ((await citus().placeOf(schema)) !== node) await citus().move(schema);
}

describe(`${CELLS} cells on a Citus (seed ${SEED})`, () => {
  let world: CellsWorld;

  beforeAll(async () => {
    const { coordinator, nodes } = citus();
    await citus().query(`alter database ${DATABASE} set citus.enable_schema_based_sharding = on`);
    const cells = Array.from({ length: CELLS }, (_, index) => cellOf(coordinator, DATABASE, index + 1));
    const [first] = cells as [Cell, ...Cell[]];
    const databaseUrls = [coordinator, coordinator, nodes[0]].map((server) => urlOf(first, server));
    world = await openCellsWorld(SEED, { cells, databaseUrls, servers: [] });
    await world.begin();
  });
  afterAll(() => world?.close());
  // The client library tells of each answer that was none.
  beforeEach(() => void vi.spyOn(console, 'error').mockReturnValue());

  it.each(Object.entries(MOVE_TRIALS))('go on while projects %s', async (_, trial) => {
    await trial(world);
  });
  it.each(Object.entries(CITUS_TRIALS))('go on %s', async (_, trial) => {
    await trial(world);
  });

  it('have lost nothing, done nothing twice without a reason, kept every limit and order, and have nothing in two cells', async () => {
    await world.calmDown();
    const { findings, acked, succeeded } = await judge(world);
    expect(findings.join('\n')).toBe('');
    expect(acked).toBeGreaterThan(300);
    expect(succeeded).toBeGreaterThan(20);
  });
});
