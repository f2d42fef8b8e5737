/** Starts the PostgreSQL servers that tests share (shared.ts), in the main process of the test run, and stops them. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestProject } from 'vitest/node';
import { openPostgresStore } from '../../../src/store/drivers/postgres/open.ts';
import { systemClock } from '../../../src/system/system.ts';
import type { PostgresVersion } from './binaries.ts';
import { type Cluster, startCluster } from './cluster.ts';

/** Starts an HTTP server through which tests request clusters and databases; returns the teardown. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const clusters = new Map<PostgresVersion, Promise<Cluster>>();
  const cluster = (version: PostgresVersion) => {
    const started = clusters.get(version) ?? startCluster({ version });
    clusters.set(version, started);
    return started;
  };

  const templates = new Map<PostgresVersion, Promise<string>>();
  const template = (version: PostgresVersion) => {
    const made = templates.get(version) ?? cluster(version).then(makeTemplate);
    templates.set(version, made);
    return made;
  };

  const server = createServer((request, response) => {
    answer(request.url ?? '').then(
      (body) => response.end(JSON.stringify(body)),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  async function answer(path: string): Promise<unknown> {
    const [, what, wanted, name = ''] = path.split('/');
    const version = wanted === '14' ? 14 : 18;
    const shared = await cluster(version);
    switch (what) {
      case 'database':
        return { url: await shared.createDatabase() };
      case 'copy':
        return { url: await shared.copyDatabase(name) };
      case 'migrated':
        return { url: await shared.copyDatabase(await template(version)) };
      default:
        return { port: shared.port };
    }
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  project.provide('postgresStarterUrl', `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return async () => {
    server.closeAllConnections();
    server.close();
    // Clusters that could not start are ignored: the tests have reported the error.
    await Promise.allSettled(Array.from(clusters.values(), async (started) => (await started).dispose()));
  };
}

const TEMPLATE = 'migrated';

/** Creates a database with the schema, and returns its name. Copying a database is faster than migrating a new one. */
async function makeTemplate(cluster: Cluster): Promise<string> {
  const url = await cluster.createDatabase(TEMPLATE);
  const store = await openPostgresStore({
    url,
    listenUrl: '',
    clock: systemClock,
    sender: TEMPLATE,
    onFatal: () => {},
  });
  await store.close();
  return TEMPLATE;
}
