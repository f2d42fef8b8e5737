/** What the comparison of job queues needs of each: somebody who adds jobs, and a process that counts those that are done. */
import { fileURLToPath } from 'node:url';
import type { Cluster } from '../../test/support/postgres/cluster.ts';
import type { Parties } from '../cpu.ts';
import { type ArrivalProcess, startArrivals } from '../receiver-process.ts';
import { installReferences, versionOf } from '../references.ts';
import { dropDatabase, freshDatabase, refreshStatistics } from './database.ts';
import type { JobAdder, LibraryName } from './libraries/library.ts';
import { loadLibrary } from './libraries/load.ts';
import { installRedis, startRedis } from './redis-server.ts';

export interface JobContestant {
  /** As the report names it, with its version. */
  name: string;
  /** HTTP in, and a signed delivery over HTTP; or a library, whose jobs are added and handled in the same processes. */
  work: 'webhooks' | 'library alone';
  /** What it consists of, with what it keeps its jobs in. */
  parties: Parties;
  /** Whom the jobs are for, unless it is among these. */
  endpoint?: Parties;
  done: ArrivalProcess;
  /** Resolves when the job is kept. */
  add(body: string): Promise<void>;
  addMany(bodies: readonly string[]): Promise<void>;
  /** Called after the first jobs, before any is measured. */
  settleIn(): Promise<void>;
  end(): Promise<void>;
}

export type StartContestant = (server: Cluster) => Promise<JobContestant>;

const HANDLER = fileURLToPath(new URL('./libraries/handler.ts', import.meta.url));

/**
 * In the versions whose settings `libraries/` knows. Of pg-boss it is not the newest one: 12.36 and later ask for a
 * package that is not everywhere to be had.
 */
const PACKAGES: Readonly<Record<LibraryName, readonly string[]>> = {
  bullmq: ['bullmq@6', 'ioredis@5'],
  'pg-boss': ['pg-boss@12.35'],
  'graphile-worker': ['graphile-worker@0.18'],
};

export const LIBRARIES: readonly LibraryName[] = ['bullmq', 'pg-boss', 'graphile-worker'];

/** Installs the libraries and what they need; returns the folder that has them. */
export function installLibraries(): string {
  installRedis();
  return installReferences(Object.values(PACKAGES).flat());
}

export function startLibraryAlone(library: LibraryName, folder: string): StartContestant {
  return async (server) => {
    const keeper = await startKeeper(library, folder, server);
    const { openAdder } = await loadLibrary(library, folder);
    const { arrivals } = await startArrivals(HANDLER, [library, folder, keeper.url], 'receiving');
    const adder: JobAdder = await openAdder(keeper.url);
    return {
      name: keeper.name,
      work: 'library alone',
      parties: { ...keeper.parties, 'who handles': [arrivals.pid] },
      done: arrivals,
      add: (body) => adder.add({ body }),
      addMany: (bodies) => adder.addMany(bodies.map((body) => ({ body }))),
      settleIn: keeper.settleIn,
      async end() {
        await arrivals.end();
        await adder.close();
        await keeper.end();
      },
    };
  };
}

/** What a library keeps its jobs in: Redis or a database of its own, ready for it. */
export interface Keeper {
  /** Of the library, with versions. */
  name: string;
  url: string;
  parties: Parties;
  settleIn: () => Promise<void>;
  end: () => Promise<void>;
}

export async function startKeeper(library: LibraryName, folder: string, server: Cluster): Promise<Keeper> {
  const keeper = library === 'bullmq' ? await redisKeeper(folder) : await postgresKeeper(library, folder, server);
  const { prepare } = await loadLibrary(library, folder);
  await prepare(keeper.url);
  return keeper;
}

async function redisKeeper(folder: string): Promise<Keeper> {
  const redis = await startRedis();
  return {
    name: `BullMQ ${versionOf(folder, 'bullmq')} on Redis ${redis.version}`,
    url: redis.url,
    parties: { Redis: [redis.pid] },
    settleIn: async () => undefined,
    end: () => redis.end(),
  };
}

async function postgresKeeper(library: LibraryName, folder: string, server: Cluster): Promise<Keeper> {
  const database = await freshDatabase(server);
  return {
    name: `${library} ${versionOf(folder, library)}`,
    url: database.url,
    parties: { PostgreSQL: [server.pid] },
    settleIn: () => refreshStatistics(database.url),
    end: () => dropDatabase(server, database.name),
  };
}
