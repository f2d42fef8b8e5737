/** Locks, creates, replaces and removes database files. */
import { closeSync, openSync, realpathSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { syncToDisk } from '../../../system/disk.ts';
import { makeFolder } from '../../../system/folder.ts';
import { type FileLock, lockFile } from './lock.ts';

export interface LockedFile {
  /** One name per file, so that different ways to write its path lead to one lock. */
  path: string;
  lock: FileLock;
}

/** Makes a missing folder of the database, but not the database. Throws `StoreInUse` when another process has it. */
export function lockDatabase(givenPath: string): LockedFile {
  const path = canonical(givenPath);
  createForOwner(`${path}.lock`);
  return { path, lock: lockFile(path) };
}

/**
 * Creates a file that only its owner can read: messages hold secrets, and SQLite would make a file that everybody can
 * read. Its write-ahead log gets the same mode. An existing file keeps the mode that its owner has chosen. It is not
 * even opened: closing it would drop a lock that this process may have on it.
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
 * SQLite cannot open a database without its file `-shm`, which it removes when it closes the database. The file is made
 * again at once: otherwise a disk that is full by the next start would have no room for it. SQLite overwrites whatever is in it. The
 * caller has closed the database, and holds its lock.
 */
export function reserveWalIndex(path: string): void {
  let handle: number | undefined;
  try {
    handle = openSync(`${path}-shm`, 'wx', 0o600);
    writeSync(handle, Buffer.alloc(WAL_INDEX_BYTES));
  } catch {
    // Another process reads the database, such as a backup, and has made it; or there is no room for it now either.
  } finally {
    if (handle !== undefined) closeSync(handle);
  }
}

/** Removes a database that nobody has open, with what SQLite keeps beside it. */
export function removeDatabase(path: string): void {
  for (const file of [path, `${path}-wal`, `${path}-shm`, `${path}-journal`]) rmSync(file, { force: true });
}

/** Gives a closed database, complete in one file, the name `path`. It is all there even after a power cut. */
export function putInPlace(file: string, path: string): void {
  syncToDisk(file);
  renameSync(file, path);
  syncToDisk(dirname(path));
}

function canonical(path: string): string {
  const folder = dirname(path);
  makeFolder(folder);
  return statSync(path, { throwIfNoEntry: false }) ? realpathSync(path) : join(realpathSync(folder), basename(path));
}
