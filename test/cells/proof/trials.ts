/** The faults of cells, of their connections, and of workers, while all of them are under load. */
import type { Worker } from '../../cluster/workers.ts';
import type { Cluster } from '../../support/postgres/cluster.ts';
import { STEPS } from './mover.ts';
import type { Project } from './project.ts';
import type { CellsWorld } from './world.ts';

/** Afterwards everything runs again, and every project is served. */
export type Trial = (world: CellsWorld) => Promise<void>;

/** More of them take longer, and are for a run by hand. */
const ROUNDS = Number(process.env['CELLS_PROOF_ROUNDS'] ?? 1);
/** The delay after a reported step, so that the kill hits the middle of this step or of a later one. */
const INTO_STEP_MS = 60;

export const MOVE_TRIALS: Readonly<Record<string, Trial>> = {
  'are being moved when the command is killed repeatedly, and then continued or cancelled': async (world) => {
    const moving = twoOf(world);
    await world.survive([], () =>
      world.unharmed(world.others(moving), async () => {
        await Promise.all(moving.map((project) => project.during(() => moveAndKill(world, project))));
      }),
    );
    await world.unharmed(moving, async () => {});
  },
  'move while workers are killed': async (world) => {
    for (let kill = 0; kill < ROUNDS; kill += 1) {
      const [project] = twoOf(world);
      const worker = world.random.choose(world.workers.all);
      await world.survive(world.projects, async () => {
        await project.during(async () => {
          const to = world.cellFor(project);
          await world.mover.begin(project.name, to.name, world.random.choose(['copying', 'pausing']));
          await worker.end('SIGKILL');
          await Promise.all([world.mover.untilMoved(project.name, to.name), worker.start()]);
        });
        await world.readHomes();
      });
    }
  },
  'move while a worker is frozen, which then uses their former placement': async (world) => {
    const [project] = twoOf(world);
    const [worker] = world.workers.all as [Worker];
    await world.survive(world.projects, async () => {
      const to = world.cellFor(project);
      await project.during(async () => {
        const move = await world.mover.begin(project.name, to.name, 'copying');
        worker.freeze();
        await move.ended();
        worker.thaw();
        await world.until([
          { what: 'answers of the worker that slept', count: () => project.client.done(worker), atLeast: 5 },
        ]);
        await world.mover.untilMoved(project.name, to.name);
      });
      await world.readHomes();
    });
  },
};

export const MOVE_TRIALS_BY_HAND: Readonly<Record<string, Trial>> = {
  'move from cell to cell, two at a time': async (world) => {
    for (let count = 0; count < ROUNDS; count += 1) {
      const moving = twoOf(world);
      await world.survive([], () =>
        world.unharmed(world.others(moving), async () => {
          await Promise.all(moving.map((project) => world.move(project, world.cellFor(project))));
        }),
      );
      await world.unharmed(moving, async () => {}); // all workers know the placements
    }
  },
};

async function moveAndKill(world: CellsWorld, project: Project): Promise<void> {
  const { random, mover } = world;
  for (let kill = 0; kill < ROUNDS; kill += 1) {
    await world.readHomes();
    const to = world.cellFor(project).name;
    await mover.killAt(project.name, to, random.choose(STEPS), random.int(0, INTO_STEP_MS));
    const isCancelled = random.chance(0.4) && (await mover.cancel(project.name)) !== 'too late';
    if (!isCancelled) await mover.untilMoved(project.name, to);
  }
  await world.readHomes();
}

export const SERVER_TRIALS: Readonly<Record<string, Trial>> = {
  'is killed while projects move to it and away from it, and recovers': (world) =>
    withoutServer(world, otherServer(world), KILLED),
  'of the directory hangs': (world) => withoutServer(world, world.directory, HANGS),
};

export const SERVER_TRIALS_BY_HAND: Readonly<Record<string, Trial>> = {
  hangs: (world) => withoutServer(world, otherServer(world), HANGS),
  'of the directory is killed, and recovers': (world) => withoutServer(world, world.directory, KILLED),
};

interface Absence {
  take: (server: Cluster) => Promise<void>;
  giveBack: (server: Cluster) => Promise<void>;
}

const KILLED: Absence = {
  take: (server) => server.kill(),
  giveBack: (server) => server.start(),
};

const HANGS: Absence = {
  take: async (server) => server.freeze(),
  giveBack: async (server) => server.thaw(),
};

async function withoutServer(world: CellsWorld, server: Cluster, { take, giveBack }: Absence): Promise<void> {
  const struck = world.on(server);
  const others = world.others(struck);
  const away = world.cellsOn(server);
  const leaver = struck[0];
  const comer = world.random.choose(others);
  const isDirectory = server === world.directory;
  await world.survive([...struck, comer], async () => {
    const moves: [Project, string][] = [[comer, world.cellFor(comer, away).name]];
    if (leaver)
      moves.push([
        leaver,
        world.cellFor(
          leaver,
          world.cells.filter((cell) => !away.includes(cell)),
        ).name,
      ]);
    const begun = await Promise.all(moves.map(([project, to]) => world.mover.begin(project.name, to, 'copying')));
    await take(server);
    await world.unharmed(
      others.filter((project) => project !== comer),
      async () => {
        await world.refused(struck);
        await world.readyWithout(away);
        await world.alive(others.filter((project) => project !== comer));
      },
    );
    if (!isDirectory) await restartOne(world);
    await giveBack(server);
    await Promise.all(begun.map((move) => move.ended()));
    await world.readyWithout([]);
    for (const [project, to] of moves) await project.during(() => world.mover.untilMoved(project.name, to));
    await world.readHomes();
  });
}

/** A worker shuts down cleanly, and starts, as if all cells were available. */
async function restartOne(world: CellsWorld): Promise<void> {
  const worker = world.random.choose(world.workers.all);
  const exit = await worker.end('SIGTERM');
  if (exit?.code !== 0)
    throw new Error(`${worker.name} did not shut down cleanly: ${JSON.stringify(exit)}\n${worker.output()}`);
  await worker.start();
}

function otherServer(world: CellsWorld): Cluster {
  return world.random.choose(
    world.servers.filter((server) => server !== world.directory && world.on(server).length > 0),
  );
}

function twoOf({ projects, random }: CellsWorld): [Project, Project] {
  const first = random.choose(projects);
  return [first, random.choose(projects.filter((project) => project !== first))];
}
