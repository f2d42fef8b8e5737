/**
 * Contestants with the same work: webhooks are received over HTTP, stored, and delivered with a signature to the same endpoint.
 * Waypost is compared with webhooks built on job libraries: an intake on Fastify, and a process that delivers.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Pool } from 'undici';
import { type ListeningProcess, startListening } from '../../child-process.ts';
import { type Receiver, startArrivals, startReceiver } from '../../receiver-process.ts';
import { DEVELOPMENT_TOKEN, startWaypost } from '../../waypost-process.ts';
import { dropDatabase, freshDatabase, refreshStatistics } from '../database.ts';
import { type JobContestant, type StartContestant, startStorage } from '../job-contestant.ts';
import type { LibraryName } from '../libraries/library.ts';

const INTAKE = fileURLToPath(new URL('./intake.ts', import.meta.url));
const DELIVERER = fileURLToPath(new URL('./deliverer.ts', import.meta.url));

/** Maximum number of concurrent publishes. */
const CONNECTIONS = 64;

/** Waypost with one worker per process. */
export function startWaypostOnPostgres(processes: number): StartContestant {
  return async (server) => {
    const database = await freshDatabase(server);
    const env = { DATABASE_URL: database.url, WAYPOST_ENCRYPTION_KEY: randomBytes(32).toString('base64') };
    return startWaypostJobs({
      ...{ name: named('Waypost on PostgreSQL', processes, 'processes'), env, flags: [], processes },
      parties: { PostgreSQL: [server.pid] },
      finishWarmUp: () => refreshStatistics(database.url),
      end: () => dropDatabase(server, database.name),
    });
  };
}

/** Waypost with all workers in one process. */
export function startWaypostOnSqlite(workers: number): StartContestant {
  return () =>
    startWaypostJobs({
      ...{ name: named('Waypost on SQLite', workers, 'workers'), env: {}, flags: ['--workers', String(workers)] },
      ...{ processes: 1, parties: {} },
      finishWarmUp: async () => undefined,
      end: async () => undefined,
    });
}

function named(name: string, count: number, what: string): string {
  return count === 1 ? name : `${name}, ${count} ${what}`;
}

interface WaypostJobOptions extends Pick<JobContestant, 'name' | 'parties' | 'finishWarmUp' | 'end'> {
  env: Record<string, string>;
  flags: string[];
  processes: number;
}

async function startWaypostJobs({ env, flags, processes, ...options }: WaypostJobOptions): Promise<JobContestant> {
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-jobs-'));
  const receiver = await startReceiver('ordinary');
  const wayposts: ListeningProcess[] = [];
  while (wayposts.length < processes) {
    wayposts.push(await startWaypost({ dataDir: join(dataDir, String(wayposts.length)), env, flags }));
  }
  const publisher = publishTo(
    wayposts.map(({ url }) => `${url}/v2`),
    receiver,
  );
  return {
    ...options,
    work: 'webhooks',
    parties: { ...options.parties, Waypost: wayposts.map(({ pid }) => pid) },
    endpoint: { endpoint: [receiver.pid] },
    finishedJobs: receiver,
    ...publisher,
    async end() {
      await publisher.close();
      await Promise.all(wayposts.map((waypost) => waypost.end('SIGTERM')));
      await receiver.end();
      await options.end();
      rmSync(dataDir, { recursive: true, force: true });
    },
  };
}

export function startWebhooksOn(library: LibraryName, folder: string): StartContestant {
  return async (server) => {
    const storage = await startStorage(library, folder, server);
    const receiver = await startReceiver('ordinary');
    const { arrivals: deliverer } = await startArrivals(DELIVERER, [library, folder, storage.url], 'receiving');
    const intake = await startListening([INTAKE, library, folder, storage.url]);
    const publisher = publishTo([intake.url], receiver);
    return {
      name: `${storage.name} behind HTTP`,
      work: 'webhooks',
      parties: { ...storage.parties, intake: [intake.pid], deliverer: [deliverer.pid] },
      endpoint: { endpoint: [receiver.pid] },
      finishedJobs: receiver,
      ...publisher,
      finishWarmUp: storage.finishWarmUp,
      async end() {
        await publisher.close();
        await intake.end('SIGTERM');
        await deliverer.end();
        await receiver.end();
        await storage.end();
      },
    };
  };
}

/** Publishes round-robin to `urls`, which all accept the same requests. */
function publishTo(urls: readonly string[], receiver: Receiver) {
  const targets = urls.map((url) => {
    const { origin, pathname } = new URL(url);
    const pool = new Pool(origin, { connections: CONNECTIONS / urls.length, pipelining: 1 });
    return { pool, prefix: pathname === '/' ? '' : pathname };
  });
  const destination = `${receiver.url}/`;
  let posts = 0;
  const post = async (path: string, type: string, body: string): Promise<void> => {
    const { pool, prefix } = targets[posts++ % targets.length] as (typeof targets)[number];
    const headers = { authorization: `Bearer ${DEVELOPMENT_TOKEN}`, 'content-type': type };
    const response = await pool.request({ path: prefix + path, method: 'POST', headers, body });
    const text = await response.body.text();
    if (response.statusCode > 299) throw new Error(`webhooks rejected: ${response.statusCode} ${text.slice(0, 300)}`);
  };
  return {
    add: (body: string) => post(`/publish/${destination}`, 'text/plain', body),
    addMany: (bodies: readonly string[]) =>
      post('/batch', 'application/json', JSON.stringify(bodies.map((body) => ({ destination, body })))),
    close: () => Promise.all(targets.map(({ pool }) => pool.destroy())),
  };
}
