/** Kills the real server while it revives a run in batches, after each number of batches. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { afterEach, describe, expect, it } from 'vitest';
import { startWaypost } from '../../bench/waypost-process.ts';
import { failRun } from '../../bench/workflows/resuming.ts';
import { examineStore } from '../../src/admin/examine.ts';
import { parseConfig } from '../../src/config/parse.ts';
import { eventually } from '../support/eventually.ts';
import { freshDatabase } from '../support/postgres/shared.ts';
import { Client } from './client.ts';
import { databaseName } from './database-file.ts';
import { brokenStatements } from './findings.ts';

/** Saved in sixteen batches. The run has two more entries: the initial one and the failed one. */
const PLANNED = 3_000;

/** The number of entries of the new run when the server is killed. */
const KILLS = [1, 500, 1_300];

interface Place {
  dataDir: string;
  env: Record<string, string>;
  /** Resolves to the first column of the first row. */
  ask(text: string): Promise<unknown>;
  close(): Promise<void>;
}

const dataDirs: string[] = [];
afterEach(() => {
  for (const dataDir of dataDirs.splice(0)) rmSync(dataDir, { recursive: true, force: true });
});

function newDataDir(): string {
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-reviving-'));
  dataDirs.push(dataDir);
  return dataDir;
}

async function onSqlite(): Promise<Place> {
  const dataDir = newDataDir();
  let database: DatabaseSync | undefined;
  return {
    ...{ dataDir, env: {} },
    ask: async (text) => {
      database ??= new DatabaseSync(join(dataDir, databaseName(dataDir) ?? ''), { readOnly: true });
      return Object.values(database.prepare(text).get() ?? {})[0];
    },
    close: async () => database?.close(),
  };
}

async function onPostgres(): Promise<Place> {
  const url = await freshDatabase();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return {
    dataDir: newDataDir(),
    env: { DATABASE_URL: url, WAYPOST_ENCRYPTION_KEY: randomBytes(32).toString('base64') },
    ask: async (text) => Object.values((await client.query(text)).rows[0] ?? {})[0],
    close: () => client.end(),
  };
}

describe.each([
  ['SQLite', onSqlite],
  ['PostgreSQL', onPostgres],
])('on %s a run that is revived', (_name, open) => {
  it('creates the new run completely or not at all, and the failed run can then be revived again', {
    timeout: 90_000,
  }, async () => {
    const place = await open();
    const { dataDir, env, ask } = place;
    const start = () => startWaypost({ dataDir, env });
    const config = parseConfig(env, ['--data-dir', dataDir]);
    const broken = async () => brokenStatements(await examineStore(config));
    const entries = async () => Number(await ask('select count(*) from journal'));
    const active = () => ask('select max(key) from runs where state = 1');
    let server = await start();
    try {
      const dlqId = await failRun(server, PLANNED);
      for (const killedAt of KILLS) {
        const before = await entries();
        const client = new Client(server.url);
        const resumed = client.call('POST', `/v2/workflows/dlq/resume/${dlqId}`);
        await eventually('the first pieces', async () => (await entries()) >= before + killedAt);
        await server.end('SIGKILL');
        expect(await resumed).toMatchObject({ kind: 'unknown' });
        await client.close();
        expect(await broken()).toEqual([]);
        expect(await active()).toBeNull();
        server = await start();
        expect(await active()).toBeNull();
      }
      const client = new Client(server.url);
      expect(await client.call('POST', `/v2/workflows/dlq/resume/${dlqId}`)).toMatchObject({ kind: 'ok' });
      expect(await client.call('GET', `/v2/workflows/dlq/${dlqId}`)).toMatchObject({ kind: 'refused', status: 404 });
      await client.close();
      const waiting = `select count(*) from messages where run_key = ${await active()}`;
      expect(Number(await ask(waiting))).toBe(PLANNED + 1);
      await server.end('SIGKILL');
      expect(await broken()).toEqual([]);
    } finally {
      await server.end('SIGKILL');
      await place.close();
    }
  });
});
