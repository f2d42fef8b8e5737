/** Stores of earlier versions, in the state after a kill. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import pg from 'pg';
import type { Told } from './story.ts';

const FOLDER = join(import.meta.dirname, 'fixtures');

export const DATABASE_FILE = 'waypost.db';
/** What the signing keys are sealed with. */
export const ENCRYPTION_KEY = Buffer.alloc(32, 7).toString('base64');

export function fixturePath(version: string, ending: string): string {
  return join(FOLDER, `${version}.${ending}`);
}

/** The number of the last migration that each knew. */
export const VERSIONS = [...new Set(readdirSync(FOLDER).map((name) => name.slice(0, 3)))].sort();

export function readTold(version: string, database: 'sqlite' | 'postgres'): Told {
  return JSON.parse(readFileSync(fixturePath(version, `${database}.json`), 'utf8')) as Told;
}

/** Puts the data folder's database back, with `port` in all URLs. */
export function restoreSqlite(version: string, port: number, dataDir: string): void {
  const { port: before } = readTold(version, 'sqlite');
  const stored = gunzipSync(readFileSync(fixturePath(version, 'db.gz'))).toString('latin1');
  writeFileSync(join(dataDir, DATABASE_FILE), withPort(stored, before, port), 'latin1');
}

/** Puts the dump into an empty database, with `port` in all URLs. */
export async function restorePostgres(version: string, port: number, databaseUrl: string): Promise<void> {
  const { port: before } = readTold(version, 'postgres');
  const stored = gunzipSync(readFileSync(fixturePath(version, 'sql.gz'))).toString('utf8');
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(withPort(stored, before, port));
  } finally {
    await client.end();
  }
}

/** All URLs have this one origin: with as many digits in its port, every page and the order of every index stays. */
function withPort(stored: string, before: number, after: number): string {
  if (String(before).length !== String(after).length)
    throw new Error(`port ${after} has another length than ${before}`);
  return stored.replaceAll(`127.0.0.1:${before}`, `127.0.0.1:${after}`);
}
