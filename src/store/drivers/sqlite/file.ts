/** How does a program take a database file for itself, and how does it put one on disk for certain? */
import { closeSync, fsyncSync, openSync, realpathSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { makeFolder } from '../../../system/folder.ts';
import { type FileLock, lockFile } from './lock.ts';

export interface TakenFile {
  /** One name per file, so that two ways to write its path meet in one lock. */
  path: string;
  lock: FileLock;
}

/** Makes the folder of the database when it is missing, not the database. Throws `StoreInUse` when another has it. */
export function takeFile(givenPath: string): TakenFile {
  const path = canonical(givenPath);
  createForOwner(`${path}.lock`);
  return { path, lock: lockFile(path) };
}

/**
 * Messages hold secrets of those who publish, and SQLite would make a file that everybody can read; its write-ahead log
 * gets the mode of the database. A file that exists keeps its mode, which its owner has chosen, and is not even opened:
 * closing it would drop the lock that this process may have on it.
 */
export function createForOwner(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** Removes a database that nobody has open, with what SQLite keeps beside it. */
export function removeDatabase(path: string): void {
  for (const file of [path, `${path}-wal`, `${path}-shm`, `${path}-journal`]) rmSync(file, { force: true });
}

/** Gives a database that is closed, and complete in one file, the name `path`, durably: after a power cut too it is all there. */
export function putInPlace(file: string, path: string): void {
  syncToDisk(file);
  renameSync(file, path);
  syncToDisk(dirname(path));
}

function syncToDisk(path: string): void {
  const handle = openSync(path, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

function canonical(path: string): string {
  const folder = dirname(path);
  makeFolder(folder);
  return statSync(path, { throwIfNoEntry: false }) ? realpathSync(path) : join(realpathSync(folder), basename(path));
}
