/** Locks, creates, replaces and removes database files. */
import { closeSync, openSync, realpathSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { syncToDisk } from '../../../system/disk.ts';
import { makeFolder } from '../../../system/folder.ts';
import { type FileLock, lockFile } from './lock.ts';

export interface LockedFile {
  /** The canonical path, so that different spellings of a path share one lock. */
  path: string;
  lock: FileLock;
}

/** Creates a missing folder of the database, but no database. Throws `StoreInUse` when another process has the lock. */
export function lockDatabase(databasePath: string): LockedFile {
  const path = canonicalPath(databasePath);
  createForOwner(`${path}.lock`);
  return { path, lock: lockFile(path) };
}

/**
 * Creates a file that only its owner can read: messages contain secrets, and SQLite would create a file that everybody
 * can read. The write-ahead log gets the same mode. An existing file keeps the mode that its owner has chosen, and is not
 * opened: closing the file would release a lock that this process may have on it.
 */
export function createForOwner(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

const WAL_INDEX_BYTES = 32 * 1024;

/**
 * Recreates the file `-shm`, which SQLite removes when a database is closed, but needs when the database is opened.
 * Otherwise a disk that is full by the next start would have no space for the file. SQLite overwrites the contents of the
 * file. The caller has closed the database, and has the lock of the database.
 */
export function reserveWalIndex(path: string): void {
  let handle: number | undefined;
  try {
    handle = openSync(`${path}-shm`, 'wx', 0o600);
    writeSync(handle, Buffer.alloc(WAL_INDEX_BYTES));
  } catch {
    // Another process that reads the database, such as a backup, has created the file; or the disk is full now.
  } finally {
    if (handle !== undefined) closeSync(handle);
  }
}

/** Removes a database that no process has open, with its WAL, WAL index and journal. */
export function removeDatabase(path: string): void {
  for (const file of [path, `${path}-wal`, `${path}-shm`, `${path}-journal`]) rmSync(file, { force: true });
}

/** Renames `file`, a complete and closed database, to `path`, where it is complete even after a power cut. */
export function moveIntoPlace(file: string, path: string): void {
  syncToDisk(file);
  renameSync(file, path);
  syncToDisk(dirname(path));
}

function canonicalPath(path: string): string {
  const folder = dirname(path);
  makeFolder(folder);
  return statSync(path, { throwIfNoEntry: false }) ? realpathSync(path) : join(realpathSync(folder), basename(path));
}
