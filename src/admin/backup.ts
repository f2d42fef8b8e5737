/** `waypost backup`: writes a consistent snapshot of the store to one file, while its servers run. */
import { existsSync, statSync } from 'node:fs';
import { dirname, extname, join, resolve } from 'node:path';
import type { Config } from '../config/table.ts';
import { SqliteDriver } from '../store/drivers/sqlite/driver.ts';
import { createForOwner, moveIntoPlace, removeDatabase } from '../store/drivers/sqlite/file.ts';
import { checkIntegrity, mergeWal, writeSnapshot } from '../store/drivers/sqlite/snapshot.ts';
import { appliedMigrations, isStore, MoveUnfinished, UNFINISHED_MOVE } from '../store/migrations/index.ts';
import { type CopyOptions, copyStore } from '../store/move/copy.ts';
import { type Census, readCensus } from '../store/operations/reports/invariants.ts';
import { CannotStart } from '../system/cannot-start.ts';
import { isDenied } from '../system/folder.ts';
import { systemClock } from '../system/system.ts';
import { openPostgresDriver, storedDatabaseOf } from './exclusive-store.ts';
import { checkExists, type Database, messageOf } from './open-store.ts';

export interface Backup {
  file: string;
  bytes: number;
  census: Census;
}

export interface BackupProgress {
  /** Called when a step of `STEPS` starts. */
  onStep: (step: (typeof STEPS)[number]) => void;
  /** Called when a backup of PostgreSQL copies rows. A backup of a SQLite file copies no single rows. */
  onProgress: NonNullable<CopyOptions['onProgress']>;
}

export const STEPS = ['copy', 'count', 'check'] as const;

/**
 * Writes the backup to the file `to`. If `to` is a folder, the file in this folder is named after the time. The file gets
 * its name only when the backup is complete, checked and on disk. Throws `CannotStart`, with a message for the operator.
 */
export async function backUp(config: Config, to: string, { onStep, onProgress }: BackupProgress): Promise<Backup> {
  const store = storedDatabaseOf(config);
  let partial: string | undefined;
  try {
    const file = fileFor(to);
    partial = `${file}.part`;
    onStep('copy');
    if (store.kind === 'sqlite') snapshot(store.path, partial);
    else await copyInto(store, partial, onProgress);
    onStep('count');
    const census = await readFileCensus(partial);
    onStep('check');
    checkIntegrity(partial);
    moveIntoPlace(partial, file);
    return { file, bytes: statSync(file).size, census };
  } catch (error) {
    if (partial !== undefined) removeDatabase(partial);
    if (error instanceof CannotStart) throw error;
    const remedy = isDenied(error) ? ': run this as a user that may write there' : '';
    throw new CannotStart(`no backup: ${messageOf(error)}${remedy}`, { cause: error });
  }
}

function fileFor(to: string): string {
  const found = statSync(to, { throwIfNoEntry: false });
  const time = new Date(systemClock.wallMs()).toISOString().slice(0, 19).replaceAll(':', '-');
  const file = resolve(found?.isDirectory() ? join(to, `waypost-${time}Z.db`) : to);
  // A file must not get the name of a missing folder, such as a disk that is not mounted.
  if (!found && (/[/\\]$/.test(to) || extname(file) === '')) {
    throw new CannotStart(`there is no folder ${file}: create it first, or name a file, such as ${file}.db`);
  }
  if (existsSync(file)) throw new CannotStart(`${file} exists already: choose another name, or a folder`);
  if (!existsSync(dirname(file))) throw new CannotStart(`there is no folder ${dirname(file)}`);
  return file;
}

function snapshot(path: string, partial: string): void {
  checkExists(path);
  writeSnapshot(path, partial);
}

/** Copies one snapshot of the database, in chunks of rows. */
async function copyInto(
  { url }: Database & { kind: 'postgres' },
  partial: string,
  onProgress: BackupProgress['onProgress'],
): Promise<void> {
  removeDatabase(partial);
  createForOwner(partial);
  const source = openPostgresDriver(url);
  const target = new SqliteDriver({ path: partial });
  try {
    const afterChunk = () => target.maintain();
    await source.read((queries) => copyStore({ read: (work) => work(queries) }, target, { onProgress, afterChunk }));
  } finally {
    await target.close();
    await source.close();
  }
  mergeWal(partial);
}

/** Counts the rows of a file. Throws when the file is not a complete store of Waypost. */
export async function readFileCensus(path: string): Promise<Census> {
  const driver = new SqliteDriver({ path, readOnly: true });
  try {
    return await driver.read(async (queries) => {
      if (!(await isStore(driver, queries))) throw new Error(`${path} is no store of Waypost`);
      const applied = await appliedMigrations(queries);
      if (applied.some(({ number }) => number === UNFINISHED_MOVE)) throw new MoveUnfinished();
      return readCensus(queries);
    });
  } finally {
    await driver.close();
  }
}
