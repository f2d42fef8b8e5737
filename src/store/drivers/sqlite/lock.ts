/** The lock that lets only one process use a database file. */
import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';

/** Another server has the database open. */
export class StoreInUse extends Error {
  constructor(path: string, owner: string) {
    super(`the database ${path} is in use by ${owner}; stop that server first, or choose another file`);
    this.name = 'StoreInUse';
  }
}

export interface FileLock {
  release(): void;
}

/**
 * Takes an exclusive lock on `<path>.lock` for the life of the process. The operating system releases the lock however
 * the process ends, so no stale lock remains. `<path>.owner` only tells people which process has the lock. Throws
 * `StoreInUse` when another process has the lock.
 */
export function lockFile(path: string): FileLock {
  // Only SQLite may open the lock file: closing another handle on this file would release the process's lock.
  const lock = new DatabaseSync(`${path}.lock`, { timeout: 0 });
  try {
    // The file stays empty. A journal on disk would need space, which a full disk does not have.
    lock.exec('pragma journal_mode = memory; begin exclusive');
  } catch (error) {
    lock.close();
    if (isBusy(error)) throw new StoreInUse(path, describeOwner(`${path}.owner`));
    throw error;
  }
  const release = (): void => {
    rmSync(`${path}.owner`, { force: true });
    lock.close();
  };
  try {
    // The file is complete before it gets its name, because a refused process may read the file at any moment.
    writeFileSync(`${path}.owner.new`, `${process.pid}\n`, { mode: 0o600 });
    renameSync(`${path}.owner.new`, `${path}.owner`);
  } catch (error) {
    if (!isFull(error)) {
      release();
      throw error;
    }
    rmSync(`${path}.owner.new`, { force: true }); // only people read the owner file
  }
  return { release };
}

/** The file may appear or vanish at any time. */
function describeOwner(ownerPath: string): string {
  try {
    const { mtime } = statSync(ownerPath);
    return `process ${readFileSync(ownerPath, 'utf8').trim()}, running since ${mtime.toISOString()}`;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    return 'another process';
  }
}

function isFull(error: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes((error as NodeJS.ErrnoException).code ?? '');
}

const SQLITE_BUSY = 5;

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY;
}
