/** How is a folder made that only its owner may read, and what may this user not do? */
import { accessSync, constants, existsSync, mkdirSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { CannotStart } from './cannot-start.ts';

/**
 * Makes the folder and its missing parents. Throws the system's errors. Node's own `recursive` never ends where the
 * system says that a folder does not exist although its parent does, as in /proc.
 */
export function makeFolder(path: string): void {
  const folder = resolve(path);
  if (existsSync(folder)) return;
  makeFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Another process was faster.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

/** Whether the system has refused something to this user, or to everybody. */
export function isDenied(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'EACCES' || code === 'EPERM' || code === 'EROFS';
}

/**
 * Whether there is a file that can be read. Throws `CannotStart` where this user may not know: `existsSync` calls that
 * missing too.
 */
export function isThere(path: string): boolean {
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
