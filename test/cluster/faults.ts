/** The faults of workers, of their connections, and of PostgreSQL, all of them under load. */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { eventually } from '../support/eventually.ts';
import { freezeInBatch } from './hung-worker.ts';
import type { Worker } from './workers.ts';
import { WORKER_TIMEOUT_MS, type World } from './world.ts';

/** Causes a fault and ends it. Afterwards all workers run and reach the database again. */
export type Fault = (world: World) => Promise<void>;

export const WORKER_FAULTS = {
  'is killed, and another one soon after': async (world) => {
    const [first, second] = twoOf(world);
    await first.end('SIGKILL');
    await world.goOn(world.random.int(5, 40));
    await second.end('SIGKILL');
    await Promise.all([first.start(), second.start()]);
  },
  // Both workers fail in one fault, because waiting until a worker expires takes most of the time.
  'is frozen, and one waits for answers that never come, until they are declared dead and go on as if nothing had happened':
    async (world) => {
      const [frozen, { proxy }] = twoOf(world);
      frozen.freeze();
      proxy.stall();
      await untilDismissed(world, 2);
      frozen.thaw();
      proxy.flow();
    },
  'is frozen in the middle of a batch, with a project locked that all of them work for': async (world) => {
    const [frozen] = twoOf(world);
    await freezeInBatch(frozen, (text) => world.query(text));
    await world.goOn(40);
    frozen.thaw();
  },
} as const satisfies Record<string, Fault>;

export const CONNECTION_FAULTS = {
  'are slow': async (world) => {
    setDelay(world, 25);
    await world.goOn(20);
    setDelay(world, 0);
  },
  'are cut after a COMMIT was sent, before its answer comes': async (world) => {
    for (let cut = 0; cut < 4; cut += 1) await cutAtCommit(world, 'after');
  },
  'are cut just before a COMMIT is sent': async (world) => {
    for (let cut = 0; cut < 4; cut += 1) await cutAtCommit(world, 'before');
  },
  'are reset, all of a worker at once': async (world) => {
    for (const { proxy } of world.workers.all) {
      proxy.cutAll('reset');
      await world.goOn(world.random.int(1, 20));
    }
  },
} as const satisfies Record<string, Fault>;

export const SERVER_FAULTS = {
  'ends all sessions': async (world) => {
    await terminate(world, 'true');
    await world.goOn(world.random.int(1, 20));
    await terminate(world, 'true');
  },
  'ends the sessions that listen': async (world) => {
    await terminate(world, "query ilike 'listen %'");
  },
  'has no free connection': async (world) => {
    await hoardConnections(world);
  },
  'is restarted': (world) => world.cluster.restart('fast'),
  'is killed, and recovers': async (world) => {
    await world.cluster.kill();
    await world.cluster.start();
  },
} as const satisfies Record<string, Fault>;

export const POOLER_FAULTS = {
  'is killed, and started again': async ({ pooler }) => {
    await pooler?.kill();
    await pooler?.start();
  },
} as const satisfies Record<string, Fault>;

/** Crashes PostgreSQL, and keeps it down until every worker has reported it, and for at least `outageMs`. */
export function outage(outageMs: number): Fault {
  return async (world) => {
    await world.cluster.stop('immediate');
    await Promise.all([world.untilAllAreInDoubt(), sleep(outageMs)]);
    await world.cluster.start();
  };
}

/** One worker runs the program in `folder` for a while, and then the current program again. */
export function upgradeAndBack(folder: string): Fault {
  return async (world) => {
    const [worker] = twoOf(world);
    for (const program of [folder, undefined]) {
      await worker.end('SIGTERM');
      worker.program = program;
      await worker.start();
      await world.goOn(50);
    }
  };
}

function twoOf({ workers, random }: World): [Worker, Worker] {
  const first = random.choose(workers.all);
  return [first, random.choose(workers.all.filter((worker) => worker !== first))];
}

function setDelay({ workers }: World, delayMs: number): void {
  for (const { proxy } of workers.all) proxy.delayMs = delayMs;
}

async function cutAtCommit({ workers, random }: World, when: 'before' | 'after'): Promise<void> {
  await random.choose(workers.all).proxy.cutAtCommit(when);
}

/** Resolves once `count` of the workers have expired in the database. */
async function untilDismissed(world: World, count: number): Promise<void> {
  const others = world.workers.all.length - count;
  if (others < 1) throw new Error('no worker is left to expire them');
  let known = Infinity;
  await eventually(
    () => `${others} workers to be left; ${known} are`,
    async () => {
      await sleep(100); // each check opens a connection
      const [row] = await world.query('select count(*)::int count from workers');
      known = Number(row?.['count']);
      return known <= others;
    },
    10 * WORKER_TIMEOUT_MS,
  );
}

/** The number of connections that PostgreSQL rejects. */
const REFUSALS = 40;
const OF_OTHERS = "pid <> pg_backend_pid() and backend_type = 'client backend'";

async function terminate({ cluster }: World, which: string): Promise<void> {
  await cluster.query(`select pg_terminate_backend(pid) from pg_stat_activity where ${OF_OTHERS} and ${which}`);
}

/** Ends the sessions of the workers, and opens connections until PostgreSQL has rejected enough of them. */
async function hoardConnections({ cluster }: World): Promise<void> {
  const hoard: pg.Client[] = [];
  for (let refusals = 0; refusals < REFUSALS; ) {
    const client = new pg.Client({ connectionString: cluster.url(), application_name: 'hoarder' });
    client.on('error', () => undefined); // PostgreSQL rejects it: the workers have the last connection
    const got = await client.connect().then(
      () => true,
      () => false,
    );
    if (!got) {
      refusals += 1;
      await sleep(10);
    } else if (hoard.push(client) === 1) {
      await client.query(`select pg_terminate_backend(pid) from pg_stat_activity where ${OF_OTHERS}`);
    }
  }
  await Promise.allSettled(hoard.map((client) => client.end()));
}
