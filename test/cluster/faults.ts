/** What happens to workers, to their connections, and to PostgreSQL itself, while they work. */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { Worker } from './workers.ts';
import { DATABASE_TIMEOUT_MS, WORKER_TIMEOUT_MS, type World } from './world.ts';

/** Strikes, and mends: afterwards all workers run and reach the database again. */
export type Fault = (world: World) => Promise<void>;

export const WORKER_FAULTS = {
  'is killed, and another one soon after': async (world) => {
    const [first, second] = twoOf(world);
    await first.end('SIGKILL');
    await sleep(world.random.int(50, 400));
    await second.end('SIGKILL');
    await Promise.all([first.start(), second.start()]);
  },
  'is frozen until the others have declared it dead, and goes on as if nothing had happened': async (world) => {
    const [worker] = twoOf(world);
    worker.freeze();
    await sleep(WORKER_TIMEOUT_MS * 1.5);
    worker.thaw();
  },
} as const satisfies Record<string, Fault>;

export const CONNECTION_FAULTS = {
  'are slow': async (world) => {
    setDelay(world, 25);
    await sleep(1_500);
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
      await sleep(world.random.int(50, 200));
    }
  },
  'are half-open: one worker waits for answers that never come': async (world) => {
    const [{ proxy }] = twoOf(world);
    proxy.stall();
    await sleep(DATABASE_TIMEOUT_MS + WORKER_TIMEOUT_MS);
    proxy.flow();
  },
} as const satisfies Record<string, Fault>;

export const SERVER_FAULTS = {
  'ends all sessions': async (world) => {
    await terminate(world, 'true');
    await sleep(world.random.int(50, 200));
    await terminate(world, 'true');
  },
  'ends the sessions that listen': async (world) => {
    await terminate(world, "query ilike 'listen %'");
  },
  'has no connection to spare': async (world) => {
    await hoardConnections(world, 1_500);
  },
  'is restarted': (world) => world.cluster.restart('fast'),
  'is stopped at once, and recovers': (world) => world.cluster.restart('immediate'),
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

/** PostgreSQL is gone for `outageMs`. */
export function outage(outageMs: number): Fault {
  return async (world) => {
    await world.cluster.stop('immediate');
    await sleep(outageMs);
    await world.cluster.start();
  };
}

/** A worker runs the program in `folder` for a while, beside the others, and then today's again. */
export function upgradeAndBack(folder: string): Fault {
  return async (world) => {
    const [worker] = twoOf(world);
    for (const program of [folder, undefined]) {
      await worker.end('SIGTERM');
      worker.program = program;
      await worker.start();
      await sleep(500);
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
  await sleep(random.int(20, 100));
}

const OF_OTHERS = "pid <> pg_backend_pid() and backend_type = 'client backend'";

async function terminate({ cluster }: World, which: string): Promise<void> {
  await cluster.query(`select pg_terminate_backend(pid) from pg_stat_activity where ${OF_OTHERS} and ${which}`);
}

/** Ends the sessions of the workers, and takes whatever connection they do not get first, for `ms` milliseconds. */
async function hoardConnections({ cluster }: World, ms: number): Promise<void> {
  const untilMs = performance.now() + ms;
  const hoard: pg.Client[] = [];
  while (performance.now() < untilMs) {
    const client = new pg.Client({ connectionString: cluster.url(), application_name: 'hoarder' });
    client.on('error', () => undefined); // PostgreSQL says no: the workers have the last connection
    const got = await client.connect().then(
      () => true,
      () => false,
    );
    if (!got) await sleep(10);
    else if (hoard.push(client) === 1) {
      await client.query(`select pg_terminate_backend(pid) from pg_stat_activity where ${OF_OTHERS}`);
    }
  }
  await Promise.allSettled(hoard.map((client) => client.end()));
}
