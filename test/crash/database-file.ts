/** The embedded database of a data folder, opened behind the server's back once it has ended. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseConfig } from '../../src/config/parse.ts';
import { examineStore } from '../../src/examine.ts';
import { brokenStatements } from './findings.ts';

/** Undefined when nothing was written; throws when there are several. */
export function databaseName(dataDir: string): string | undefined {
  const names = readdirSync(dataDir).filter((name) => name.endsWith('.db'));
  if (names.length > 1) throw new Error(`expected one database in ${dataDir}: ${names.join(', ')}`);
  return names[0];
}

/** What `PRAGMA integrity_check` says of the folder's database: `['ok']` for a sound one, nothing without one. */
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

// What piled up in a queue goes out one by one, retries and callbacks included, and what a rate allows only so many in a
// second. Shorter than a minute, after which retention would tidy up what nobody else does.
const STANDSTILL_MS = 30_000;

/**
 * Waits until the folder's database has no unfinished message and no active run, or until their number stands still for so
 * long. Far cheaper than to ask its server for all logs again and again: those say afterwards who is left.
 */
export async function untilEmpty(dataDir: string, standstillMs = STANDSTILL_MS): Promise<void> {
  let fewest = Infinity;
  for (let fewestAtMs = performance.now(); performance.now() < fewestAtMs + standstillMs; ) {
    const count = databaseName(dataDir) === undefined ? Infinity : unfinishedIn(dataDir);
    if (count === 0) return;
    if (count < fewest) fewestAtMs = performance.now();
    fewest = Math.min(fewest, count);
    await sleep(50);
  }
}

/** As in the table `runs`. */
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

/** What `waypost doctor` finds wrong with the folder's database, in words; nothing without one. */
export async function findingsOfDoctor(dataDir: string): Promise<string[]> {
  if (databaseName(dataDir) === undefined) return [];
  return brokenStatements(await examineStore(parseConfig({}, ['--data-dir', dataDir])));
}
