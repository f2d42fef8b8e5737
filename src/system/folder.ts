/** Makes folders that only their owner may read, and checks permissions. */
import { accessSync, constants, existsSync, mkdirSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { CannotStart } from './cannot-start.ts';

/**
 * Makes the folder and its missing parents. Throws the system's errors. Node's `recursive` option never returns when the
 * system reports that a folder does not exist although its parent does, as in /proc.
 */
export function makeFolder(path: string): void {
  const folder = resolve(path);
  if (existsSync(folder)) return;
  makeFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Another process has made the folder in the meantime.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** Whether the system refused an operation because of permissions or a read-only file system. */
export function isDenied(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'EACCES' || code === 'EPERM' || code === 'EROFS';
}

/**
 * Whether a readable file exists. Throws `CannotStart` when this user may not read the file, for which `existsSync` would
 * return false.
 */
export function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return false;
    throw new CannotStart(`${path} cannot be read (${code}): run this as the user that the server runs as`, {
      cause: error,
    });
  }
}
