/**
 * Compares one worker on a schema of Citus, connected to the coordinator or to the node with the rows, with one worker on
 * PostgreSQL of the same installation, in alternating rounds with new servers.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Citus, installationOfCitus, makeStore } from '../../test/citus/citus.ts';
import { startCluster } from '../../test/support/postgres/cluster.ts';
import { startReceiver } from '../receiver-process.ts';
import { startWaypost } from '../waypost-process.ts';
import { SETTINGS } from './database.ts';
import { measure, medians, type WorkersFigures, type Workload } from './workers.ts';

const NAMES = ['PostgreSQL', 'through the coordinator', 'at the node'] as const;
type Name = (typeof NAMES)[number];

/** The PostgreSQL of this installation does not have the preloaded library. */
const { shared_preload_libraries: _, ...PRODUCTION_SETTINGS } = SETTINGS;
const SCHEMA = 'waypost';

/** The store of one worker. */
interface Store {
  url: string;
  /** The address of the server with the rows. */
  rowsUrl: string;
  pids: number[];
  end(): Promise<void>;
}

export interface CitusOptions extends Workload {
  rounds: number;
  onRound?: (round: number, figures: WorkersFigures) => void;
}

export async function measureCitus(options: CitusOptions): Promise<WorkersFigures[]> {
  const receiver = await startReceiver(options.peers);
  try {
    const figures: WorkersFigures[] = [];
    for (let round = 1; round <= options.rounds; round += 1) {
      for (const name of NAMES) {
        const measured = await onStore(name, async ({ url, rowsUrl, pids }) => {
          const folder = mkdtempSync(join(tmpdir(), 'waypost-citus-'));
          const env = { DATABASE_URL: url, WAYPOST_ENCRYPTION_KEY: randomBytes(32).toString('base64') };
          const worker = await startWaypost({ dataDir: folder, env, flags: [] });
          try {
            const parties = { Waypost: [worker.pid], PostgreSQL: pids };
            return await measure({ name, processes: [worker], parties, databaseUrl: rowsUrl }, receiver, options);
          } finally {
            await worker.end('SIGTERM');
            rmSync(folder, { recursive: true, force: true });
          }
        });
        options.onRound?.(round, measured);
        figures.push(measured);
      }
    }
    return [...Map.groupBy(figures, ({ contestant }) => contestant).values()].map(medians);
  } finally {
    await receiver.end();
  }
}

async function onStore<T>(name: Name, use: (store: Store) => Promise<T>): Promise<T> {
  const store = await (name === 'PostgreSQL' ? startPostgres() : startCitus(name));
  try {
    return await use(store);
  } finally {
    await store.end();
  }
}

async function startPostgres(): Promise<Store> {
  const server = await startCluster({ binaries: installationOfCitus(), settings: PRODUCTION_SETTINGS });
  const url = await server.createDatabase();
  return { url, rowsUrl: url, pids: [server.pid], end: () => server.dispose() };
}

async function startCitus(name: Name): Promise<Store> {
  const citus = await Citus.start({ settings: PRODUCTION_SETTINGS });
  const url = await makeStore(citus, SCHEMA);
  const node = await citus.placeOf(SCHEMA);
  return {
    url: name === 'at the node' ? citus.url(SCHEMA, node) : url,
    rowsUrl: node.url(),
    pids: [citus.coordinator, ...citus.nodes].map(({ pid }) => pid),
    end: () => citus.dispose(),
  };
}
