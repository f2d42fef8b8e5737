/** How is a folder made that only its owner may read, and what may this user not do? */
import { existsSync, mkdirSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

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
