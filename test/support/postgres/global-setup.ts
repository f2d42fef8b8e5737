/** Who starts the PostgreSQL that the tests share (shared.ts), and ends it? The process that runs them all. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestProject } from 'vitest/node';
import type { PostgresVersion } from './binaries.ts';
import { type Cluster, startCluster } from './cluster.ts';

/** Listens for the tests that need a cluster, and answers how to end what was started. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const clusters = new Map<PostgresVersion, Promise<Cluster>>();
  const cluster = (version: PostgresVersion) => {
    const started = clusters.get(version) ?? startCluster({ version });
    clusters.set(version, started);
    return started;
  };

  const server = createServer((request, response) => {
    answer(request.url ?? '').then(
      (body) => response.end(JSON.stringify(body)),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  async function answer(path: string): Promise<unknown> {
    const [, what, version] = path.split('/');
    const shared = await cluster(version === '14' ? 14 : 18);
    return what === 'database' ? { url: await shared.createDatabase() } : { port: shared.port };
  }

  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  project.provide('postgresStarterUrl', `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return async () => {
    server.closeAllConnections();
    server.close();
    // One that could not start has told the tests so.
    await Promise.allSettled(Array.from(clusters.values(), async (started) => (await started).dispose()));
  };
}
