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
import { look } from './backup.ts';
import { type Database, messageOf } from './open-store.ts';
import { openEnd, openPostgresDriver, storedDatabaseOf } from './store-end.ts';

export interface RestoreRequest {
  /** A file of `waypost backup`, or any SQLite database of Waypost. It is not changed. */
  from: string;
  /** Replace a store that has data. */
  overwrite: boolean;
  onProgress: NonNullable<CopyOptions['onProgress']>;
}

export interface Restored {
  census: Census;
  /** Whether the encryption key in force is the one that the signing keys in the store are encrypted with. */
  key: 'fits' | 'missing' | 'other' | 'not needed';
}

/** Throws `CannotStart` with what the operator must know. The store is then unchanged, or no server can open it. */
export async function restore(config: Config, { from, overwrite, onProgress }: RestoreRequest): Promise<Restored> {
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

/** Writes a file beside the store first; it then replaces the store in one step. */
async function restoreFile(from: string, givenPath: string, overwrite: boolean): Promise<void> {
  const { path, lock } = lockDatabase(givenPath);
  const part = `${path}.restoring`;
  try {
    checkSource(from, path, part);
    if (!overwrite) checkEmptyFile(path);
    try {
      writeSnapshot(from, part);
      await look(part);
      await checkKnown(part);
      checkIntegrity(part);
      retire(path);
      moveIntoPlace(part, path);
    } finally {
      removeDatabase(part);
    }
  } finally {
    lock.release();
  }
}

/** Throws when the backup is a file that is replaced, or removed, before it is read. */
function checkSource(from: string, path: string, part: string): void {
  const source = realpathSync(from);
  if (source === path) throw new CannotStart('that file is the store itself');
  if (source === part) throw new CannotStart(`${part} is where the restored store is written: move it away first`);
}

function checkEmptyFile(path: string): void {
  if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) === 0) return;
  try {
    if (!hasRows(path, ['migrations', 'numbers'])) return; // a new database has those
  } catch (error) {
    if (!isDamage(error)) throw error;
    throw new CannotStart(`the store ${path} cannot be read; --overwrite replaces it`, { cause: error });
  }
  throw new CannotStart(`the store ${path} is not empty; --overwrite replaces what it has`);
}

/** Throws when a server of this version would refuse the store. */
async function checkKnown(path: string): Promise<void> {
  const driver = new SqliteDriver({ path, readOnly: true });
  try {
    await driver.read(checkSchema);
  } finally {
    await driver.close();
  }
}

/** A write-ahead log that the old database leaves behind would be taken by SQLite for the log of the new one. */
function retire(path: string): void {
  if (!existsSync(path)) return removeDatabase(path);
  try {
    mergeWal(path);
  } catch (error) {
    // The store may be damaged: that is often why it is restored.
    if (!isDamage(error)) throw error;
    removeDatabase(path);
  }
}

async function restoreInto(
  store: Database,
  from: string,
  { overwrite, onProgress }: Pick<RestoreRequest, 'overwrite' | 'onProgress'>,
): Promise<void> {
  await look(from);
  const source = new SqliteDriver({ path: from, readOnly: true });
  try {
    const target = await openEnd(store, { create: true });
    try {
      const { driver, afterPiece, makeRoom } = target;
      await copyStore(source, driver, {
        overwrite,
        onProgress,
        afterChunk: afterPiece,
        ...(makeRoom && { prepareLogs: makeRoom }),
      });
    } finally {
      await target.close();
    }
  } finally {
    await source.close();
  }
}

async function examineRestored(store: Database, config: Config): Promise<Restored> {
  const driver =
    store.kind === 'sqlite' ? new SqliteDriver({ path: store.path, readOnly: true }) : openPostgresDriver(store.url);
  try {
    return await driver.read(async (queries) => ({
      census: await readCensus(queries),
      key: await keyVerdict(queries, config),
    }));
  } finally {
    await driver.close();
  }
}

async function keyVerdict(queries: Queries, config: Config): Promise<Restored['key']> {
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
