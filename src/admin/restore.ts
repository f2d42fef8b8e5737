/** `waypost restore`: replaces the store with a backup, completely or not at all. */
import { existsSync, realpathSync, statSync } from 'node:fs';
import { unsealKeys } from '../accounts/accounts.ts';
import { readEncryptionKey } from '../config/encryption-key.ts';
import { SealBroken } from '../config/sealing.ts';
import type { Config } from '../config/table.ts';
import type { Queries } from '../store/driver.ts';
import { SqliteDriver } from '../store/drivers/sqlite/driver.ts';
import { lockDatabase, moveIntoPlace, removeDatabase } from '../store/drivers/sqlite/file.ts';
import { StoreInUse } from '../store/drivers/sqlite/lock.ts';
import { checkIntegrity, hasRows, isDamage, mergeWal, writeSnapshot } from '../store/drivers/sqlite/snapshot.ts';
import { checkSchema } from '../store/migrations/index.ts';
import { type CopyOptions, copyStore } from '../store/move/copy.ts';
import { listProjects, signingKeys } from '../store/operations/accounts/projects.ts';
import { type Census, readCensus } from '../store/operations/reports/invariants.ts';
import { CannotStart } from '../system/cannot-start.ts';
import { isReadable } from '../system/folder.ts';
import { readFileCensus } from './backup.ts';
import { openExclusiveStore, openPostgresDriver, storedDatabaseOf } from './exclusive-store.ts';
import { type Database, messageOf } from './open-store.ts';

export interface RestoreRequest {
  /** A file of `waypost backup`, or any SQLite database of Waypost. The restore does not change this file. */
  from: string;
  /** Whether to replace a store that has data. */
  overwrite: boolean;
  onProgress: NonNullable<CopyOptions['onProgress']>;
}

export interface RestoreResult {
  census: Census;
  /** Whether the configured encryption key decrypts the signing keys in the store. */
  key: 'fits' | 'missing' | 'other' | 'not needed';
}

/**
 * Throws `CannotStart` with a message for the operator. After an error, the store is unchanged, or servers refuse to open
 * the store.
 */
export async function restore(config: Config, { from, overwrite, onProgress }: RestoreRequest): Promise<RestoreResult> {
  const store = storedDatabaseOf(config);
  if (!isReadable(from)) throw new CannotStart(`there is no file ${from}`);
  try {
    if (store.kind === 'sqlite') await restoreFile(from, store.path, overwrite);
    else await restoreInto(store, from, { overwrite, onProgress });
    return await examineRestored(store, config);
  } catch (error) {
    if (error instanceof CannotStart) throw error;
    if (error instanceof StoreInUse) throw new CannotStart(error.message, { cause: error });
    throw new CannotStart(`not restored: ${messageOf(error)}`, { cause: error });
  }
}

/** Writes a temporary file next to the store, which then replaces the store in one step. */
async function restoreFile(from: string, storePath: string, overwrite: boolean): Promise<void> {
  const { path, lock } = lockDatabase(storePath);
  const partial = `${path}.restoring`;
  try {
    checkSource(from, path, partial);
    if (!overwrite) checkEmptyFile(path);
    try {
      writeSnapshot(from, partial);
      await readFileCensus(partial);
      await checkSchemaOf(partial);
      checkIntegrity(partial);
      clearOldWal(path);
      moveIntoPlace(partial, path);
    } finally {
      removeDatabase(partial);
    }
  } finally {
    lock.release();
  }
}

/** Throws when the backup is a file that the restore would overwrite or remove before the restore has read the file. */
function checkSource(from: string, path: string, partial: string): void {
  const source = realpathSync(from);
  if (source === path) throw new CannotStart('that file is the store itself');
  if (source === partial)
    throw new CannotStart(`${partial} is where the restored store is written: move it away first`);
}

function checkEmptyFile(path: string): void {
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0) return;
  try {
    if (!hasRows(path, ['migrations', 'numbers'])) return; // even a new database has rows in these tables
  } catch (error) {
    if (!isDamage(error)) throw error;
    throw new CannotStart(`the store ${path} cannot be read; --overwrite replaces it`, { cause: error });
  }
  throw new CannotStart(`the store ${path} is not empty; --overwrite replaces its data`);
}

/** Throws when a server of this version would refuse the store. */
async function checkSchemaOf(path: string): Promise<void> {
  const driver = new SqliteDriver({ path, readOnly: true });
  try {
    await driver.read(checkSchema);
  } finally {
    await driver.close();
  }
}

/** Removes the write-ahead log of the old database: SQLite would apply a remaining log to the new database. */
function clearOldWal(path: string): void {
  if (!existsSync(path)) return removeDatabase(path);
  try {
    mergeWal(path);
  } catch (error) {
    // The old database may be damaged, which is a common reason for a restore.
    if (!isDamage(error)) throw error;
    removeDatabase(path);
  }
}

async function restoreInto(
  store: Database,
  from: string,
  { overwrite, onProgress }: Pick<RestoreRequest, 'overwrite' | 'onProgress'>,
): Promise<void> {
  await readFileCensus(from);
  const source = new SqliteDriver({ path: from, readOnly: true });
  try {
    const target = await openExclusiveStore(store, { create: true });
    try {
      const { driver, afterChunk, prepareLogs } = target;
      await copyStore(source, driver, {
        overwrite,
        onProgress,
        afterChunk,
        ...(prepareLogs && { prepareLogs }),
      });
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

async function examineRestored(store: Database, config: Config): Promise<RestoreResult> {
  const driver =
    store.kind === 'sqlite' ? new SqliteDriver({ path: store.path, readOnly: true }) : openPostgresDriver(store.url);
  try {
    return await driver.read(async (queries) => ({
      census: await readCensus(queries),
      key: await checkKey(queries, config),
    }));
  } finally {
    await driver.close();
  }
}

async function checkKey(queries: Queries, config: Config): Promise<RestoreResult['key']> {
  const [project] = await listProjects(queries, {});
  if (project === undefined) return 'not needed';
  const key = readEncryptionKey(config);
  if (key === undefined) return 'missing';
  try {
    unsealKeys(await signingKeys(queries, project), project.name, { encryptionKey: key });
    return 'fits';
  } catch (error) {
    if (error instanceof SealBroken) return 'other';
    throw error;
  }
}
