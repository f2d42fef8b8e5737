/**
 * Tests an upgrade after which the current version must not run. An upgrade beside which the current version can run is
 * among the faults of faults.full.test.ts.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Client, messageIdOf } from '../crash/client.ts';
import { type Endpoints, openEndpoints } from '../crash/endpoints.ts';
import { Ledger } from '../crash/ledger.ts';
import { publishTagged } from '../crash/publishing.ts';
import { eventually } from '../support/eventually.ts';
import { freshDatabase } from '../support/postgres/shared.ts';
import { makeNewerProgram } from './newer-program.ts';
import { type Worker, Workers } from './workers.ts';

const ledger = new Ledger();
const dataDir = mkdtempSync(join(tmpdir(), 'waypost-upgrade-'));
let endpoints: Endpoints;
beforeAll(async () => {
  endpoints = await openEndpoints(ledger);
});
afterAll(async () => {
  await endpoints.close();
  rmSync(dataDir, { recursive: true });
});

/** Publishes one message for now, and one for later that another worker delivers. Resolves to their ids. */
async function publishTo(worker: Worker): Promise<string[]> {
  const client = new Client(worker.url);
  const path = `/v2/publish/${endpoints.ok}`;
  const ids = [
    await publishTagged(ledger, client, { path }),
    await publishTagged(ledger, client, { path, headers: { 'Upstash-Delay': '2s' } }),
  ];
  await client.close();
  return ids.map((id) => messageIdOf({ messageId: id }));
}

async function untilDelivered(ids: readonly string[]): Promise<void> {
  const delivered = () => new Set(ledger.arrivals().map(({ messageId }) => messageId));
  await eventually('all to be delivered', () => ids.every((id) => delivered().has(id)));
}

it('exits and refuses to start after a newer worker has migrated to an incompatible schema. The newer one delivers its messages', async () => {
  const newer = makeNewerProgram(true);
  const databaseUrl = await freshDatabase();
  const workers = await Workers.start({
    databaseUrls: [databaseUrl, databaseUrl],
    dataDir,
    flags: ['--worker-timeout', '2s'],
  });
  const [old, upgraded] = workers.all;
  try {
    if (!old || !upgraded) throw new Error('there are no two workers');
    const ids = [...(await publishTo(old)), ...(await publishTo(upgraded))];
    await upgraded.end('SIGTERM');
    upgraded.program = newer.folder;
    await upgraded.start();
    const end = await old.ended();
    expect(end?.code).not.toBe(0);
    const reason = 'the database was changed by a newer Waypost (migration "next"); start that version or a later one';
    expect(old.output()).toContain('changed by a newer Waypost');
    await expect(old.start()).rejects.toThrow(reason);
    await untilDelivered([...ids, ...(await publishTo(upgraded))]);
  } finally {
    await workers.close();
    newer.remove();
  }
});
