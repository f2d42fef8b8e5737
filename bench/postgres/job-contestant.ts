/** A contestant in the comparison of job queues: the contestant adds jobs, and a process counts the finished jobs. */
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
  /** The name in the report, with its version. */
  name: string;
  /** Requests and signed deliveries over HTTP, or only a library, without HTTP. */
  work: 'webhooks' | 'library alone';
  /** The processes of the contestant, including its storage. */
  parties: Parties;
  /** The processes of the endpoint, if they are not in `parties`. */
  endpoint?: Parties;
  /** Counts the finished jobs. */
  finishedJobs: ArrivalProcess;
  /** Resolves when the job is stored. */
  add(body: string): Promise<void>;
  addMany(bodies: readonly string[]): Promise<void>;
  /** Called after the warm-up jobs, to refresh the statistics of PostgreSQL. */
  finishWarmUp(): Promise<void>;
  end(): Promise<void>;
}

export type StartContestant = (server: Cluster) => Promise<JobContestant>;

const HANDLER = fileURLToPath(new URL('./libraries/handler.ts', import.meta.url));

/**
 * The versions whose settings `libraries/` was written for. pg-boss is not the newest version: 12.36 and later depend on
 * a package that is not available everywhere.
 */
const PACKAGES: Readonly<Record<LibraryName, readonly string[]>> = {
  bullmq: ['bullmq@6', 'ioredis@5'],
  'pg-boss': ['pg-boss@12.35'],
  'graphile-worker': ['graphile-worker@0.18'],
};

export const LIBRARIES: readonly LibraryName[] = ['bullmq', 'pg-boss', 'graphile-worker'];

/** Installs the libraries and their dependencies; returns the folder that contains them. */
export function installLibraries(): string {
  installRedis();
  return installReferences(Object.values(PACKAGES).flat());
}

export function startLibraryAlone(library: LibraryName, folder: string): StartContestant {
  return async (server) => {
    const storage = await startStorage(library, folder, server);
    const { openAdder } = await loadLibrary(library, folder);
    const { arrivals } = await startArrivals(HANDLER, [library, folder, storage.url], 'receiving');
    const adder: JobAdder = await openAdder(storage.url);
    return {
      name: storage.name,
      work: 'library alone',
      parties: { ...storage.parties, handler: [arrivals.pid] },
      finishedJobs: arrivals,
      add: (body) => adder.add({ body }),
      addMany: (bodies) => adder.addMany(bodies.map((body) => ({ body }))),
      finishWarmUp: storage.finishWarmUp,
      async end() {
        await arrivals.end();
        await adder.close();
        await storage.end();
      },
    };
  };
}

/** The storage of a library's jobs: Redis, or a database of its own, with its schema. */
export interface JobStorage {
  /** The name of the library, with versions. */
  name: string;
  url: string;
  parties: Parties;
  finishWarmUp: () => Promise<void>;
  end: () => Promise<void>;
}

export async function startStorage(library: LibraryName, folder: string, server: Cluster): Promise<JobStorage> {
  const storage = library === 'bullmq' ? await redisStorage(folder) : await postgresStorage(library, folder, server);
  const { prepare } = await loadLibrary(library, folder);
  await prepare(storage.url);
  return storage;
}

async function redisStorage(folder: string): Promise<JobStorage> {
  const redis = await startRedis();
  return {
    name: `BullMQ ${versionOf(folder, 'bullmq')} on Redis ${redis.version}`,
    url: redis.url,
    parties: { Redis: [redis.pid] },
    finishWarmUp: async () => undefined,
    end: () => redis.end(),
  };
}

async function postgresStorage(library: LibraryName, folder: string, server: Cluster): Promise<JobStorage> {
  const database = await freshDatabase(server);
  return {
    name: `${library} ${versionOf(folder, library)}`,
    url: database.url,
    parties: { PostgreSQL: [server.pid] },
    finishWarmUp: () => refreshStatistics(database.url),
    end: () => dropDatabase(server, database.name),
  };
}
