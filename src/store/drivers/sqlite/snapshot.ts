/** Copies a database that is in use into one consistent file, and checks the integrity of database files. */
import { DatabaseSync } from 'node:sqlite';
import { createForOwner, removeDatabase } from './file.ts';

/** Other processes lock the database only briefly. */
const BUSY_TIMEOUT_MS = 10_000;

/** The integrity check of a database file failed. */
class DatabaseDamaged extends Error {
  constructor(path: string, findings: readonly string[]) {
    super(`${path} is damaged: ${findings.join('; ')}`);
    this.name = 'DatabaseDamaged';
  }
}

/**
 * Writes the committed rows of the database `from` to `to`, without free pages. A server may write during the copy, but
 * its write-ahead log cannot be truncated until the copy ends. Replaces `to`. Throws SQLite's errors.
 */
export function writeSnapshot(from: string, to: string): void {
  removeDatabase(to);
  createForOwner(to);
  const database = new DatabaseSync(from, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
  try {
    database.prepare('vacuum into ?').run(to);
  } finally {
    database.close();
  }
}

/** Checks all pages and indexes of a database. Throws `DatabaseDamaged` when some are damaged. */
export function checkIntegrity(path: string): void {
  const database = new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
  try {
    const findings = database
      .prepare('pragma integrity_check(5)')
      .all()
      .map((row) => String(row['integrity_check']));
    if (findings.length !== 1 || findings[0] !== 'ok') throw new DatabaseDamaged(path, findings);
  } finally {
    database.close();
  }
}

/** Whether a table that is not in `ignoredTables` has a row. Throws SQLite's errors. */
export function hasRows(path: string, ignoredTables: readonly string[]): boolean {
  const database = new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
  try {
    const tables = database.prepare("select name from sqlite_schema where type = 'table'").all();
    return tables
      .map(({ name }) => String(name))
      .filter((name) => !ignoredTables.includes(name))
      .some((name) => database.prepare(`select 1 from "${name}" limit 1`).get() !== undefined);
  } finally {
    database.close();
  }
}

/** Merges a closed database and its write-ahead log into one file. Throws when another program has the database open. */
export function mergeWal(path: string): void {
  const database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS });
  try {
    const row = database.prepare('pragma journal_mode = delete').get();
    if (row?.['journal_mode'] !== 'delete') throw new Error(`${path} is in use by another program`);
  } finally {
    database.close();
  }
}

// Primary result codes of https://sqlite.org/rescode.html.
const CORRUPT = 11;
const NOT_A_DATABASE = 26;

/** Whether the error reports that the file itself is damaged or not a database. */
export function isDamage(error: unknown): boolean {
  if (!(error instanceof Error) || !('errcode' in error) || typeof error.errcode !== 'number') return false;
  const code = error.errcode & 0xff;
  return code === CORRUPT || code === NOT_A_DATABASE;
}
