/** What the comparison of job queues needs of each: somebody who adds jobs, and a process that counts those that are done. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Pool } from 'undici';
import type { Cluster } from '../../test/support/postgres/cluster.ts';
import type { Parties } from '../cpu.ts';
import { type ArrivalProcess, startArrivals, startReceiver } from '../receiver-process.ts';
import { installReferences, versionOf } from '../references.ts';
import { DEVELOPMENT_TOKEN, startWaypost } from '../waypost-process.ts';
import { dropDatabase, freshDatabase, refreshStatistics } from './database.ts';
import type { LibraryName } from './libraries/library.ts';
import { loadLibrary } from './libraries/load.ts';
import { installRedis, startRedis } from './redis-server.ts';

export interface JobContestant {
  /** As the report names it, with its version. */
  name: string;
  /** All but this process, which adds. */
  parties: Parties;
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

/** Callers that publish at once, at most; each waits for its answer. */
const CONNECTIONS = 64;

/** Installs what it needs; then each call starts everything anew. */
export function referenceContestants(): StartContestant[] {
  const folder = installReferences(Object.values(PACKAGES).flat());
  installRedis();
  return [
    () => startBullMq(folder),
    (server) => startOnPostgres('pg-boss', folder, server),
    (server) => startOnPostgres('graphile-worker', folder, server),
  ];
}

async function startBullMq(folder: string): Promise<JobContestant> {
  const redis = await startRedis();
  return startLibrary({
    library: 'bullmq',
    name: `BullMQ ${versionOf(folder, 'bullmq')} on Redis ${redis.version}`,
    folder,
    url: redis.url,
    parties: { Redis: [redis.pid] },
    settleIn: async () => undefined,
    end: () => redis.end(),
  });
}

async function startOnPostgres(library: LibraryName, folder: string, server: Cluster): Promise<JobContestant> {
  const database = await freshDatabase(server);
  return startLibrary({
    library,
    name: `${library} ${versionOf(folder, library)}`,
    folder,
    url: database.url,
    parties: { PostgreSQL: [server.pid] },
    settleIn: () => refreshStatistics(database.url),
    end: () => dropDatabase(server, database.name),
  });
}

interface LibraryStart {
  library: LibraryName;
  name: string;
  folder: string;
  url: string;
  parties: Parties;
  settleIn: () => Promise<void>;
  /** Of what it keeps its jobs in. */
  end: () => Promise<void>;
}

async function startLibrary({ library, name, folder, url, parties, ...rest }: LibraryStart): Promise<JobContestant> {
  const { prepare, openAdder } = await loadLibrary(library, folder);
  await prepare(url);
  const { arrivals } = await startArrivals(HANDLER, [library, folder, url], 'receiving');
  const adder = await openAdder(url);
  return {
    name,
    parties: { ...parties, 'who handles': [arrivals.pid] },
    done: arrivals,
    add: (body) => adder.add(body),
    addMany: (bodies) => adder.addMany(bodies),
    settleIn: rest.settleIn,
    async end() {
      await arrivals.end();
      await adder.close();
      await rest.end();
    },
  };
}

/** One worker on PostgreSQL; jobs come over HTTP and go to an endpoint over HTTP. */
export async function startWaypostJobs(server: Cluster): Promise<JobContestant> {
  const database = await freshDatabase(server);
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-jobs-'));
  const env = { DATABASE_URL: database.url, WAYPOST_ENCRYPTION_KEY: randomBytes(32).toString('base64') };
  const receiver = await startReceiver('ordinary');
  const waypost = await startWaypost({ dataDir, env });
  const pool = new Pool(waypost.url, { connections: CONNECTIONS, pipelining: 1 });
  const destination = `${receiver.url}/`;
  const post = async (path: string, body: string) => {
    const headers = { authorization: `Bearer ${DEVELOPMENT_TOKEN}`, 'content-type': 'text/plain' };
    const answer = await pool.request({ path, method: 'POST', headers, body });
    const text = await answer.body.text();
    if (answer.statusCode > 299) throw new Error(`Waypost refused jobs: ${answer.statusCode} ${text.slice(0, 300)}`);
  };
  return {
    name: 'Waypost on PostgreSQL',
    parties: { PostgreSQL: [server.pid], Waypost: [waypost.pid], 'who handles': [receiver.pid] },
    done: receiver,
    add: (body) => post(`/v2/publish/${destination}`, body),
    addMany: (bodies) => post('/v2/batch', JSON.stringify(bodies.map((body) => ({ destination, body })))),
    settleIn: () => refreshStatistics(database.url),
    async end() {
      await pool.destroy();
      await waypost.end('SIGTERM');
      await receiver.end();
      await dropDatabase(server, database.name);
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}
