/** Opens the embedded database of a data folder directly, after its server has ended. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { examineStore } from '../../src/admin/examine.ts';
import { parseConfig } from '../../src/config/parse.ts';
import { untilNoneIsLeft } from './enough.ts';
import { brokenStatements } from './findings.ts';

/** Undefined if there is no database file. Throws if there are several. */
export function databaseName(dataDir: string): string | undefined {
  const names = readdirSync(dataDir).filter((name) => name.endsWith('.db'));
  if (names.length > 1) throw new Error(`expected one database in ${dataDir}: ${names.join(', ')}`);
  return names[0];
}

/**
 * The result of `PRAGMA integrity_check` for the folder's database: `['ok']` if it is sound, empty if there is no
 * database.
 */
export function integrity(dataDir: string): string[] {
  const name = databaseName(dataDir);
  if (name === undefined) return [];
  const database = new DatabaseSync(join(dataDir, name));
  try {
    return database
      .prepare('pragma integrity_check')
      .all()
      .map((row) => String(row['integrity_check']));
  } finally {
    database.close();
  }
}

/** Waits until the folder's database has no unfinished message and no active run, or until their number no longer changes. */
export function untilEmpty(dataDir: string, standstillMs?: number): Promise<void> {
  const count = () => (databaseName(dataDir) === undefined ? Infinity : unfinishedIn(dataDir));
  return untilNoneIsLeft(count, standstillMs);
}

/** The state of an active run in the table `runs`. */
const ACTIVE = 1;

function unfinishedIn(dataDir: string): number {
  const database = new DatabaseSync(join(dataDir, databaseName(dataDir) ?? ''), { readOnly: true, timeout: 5_000 });
  try {
    const counts = database.prepare(
      `select (select count(*) from messages) + (select count(*) from runs where state = ${ACTIVE}) as count`,
    );
    return Number(counts.get()?.['count']);
  } finally {
    database.close();
  }
}

/** The findings of `waypost doctor` for the folder's database; empty if there is no database. */
export async function findingsOfDoctor(dataDir: string): Promise<string[]> {
  if (databaseName(dataDir) === undefined) return [];
  return brokenStatements(await examineStore(parseConfig({}, ['--data-dir', dataDir])));
}
