/** Keeps the content of a data folder, above all the encryption key, out of the repository that contains the folder. */
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Files that Waypost makes there. */
const OURS = /^(waypost\.|encryption\.key(\.new-|$))/;

/** Writes a `.gitignore` with `*`, unless there is one, or the folder has files of others, which it would hide. */
export function keepOutOfGit(dataDir: string): void {
  try {
    if (!readdirSync(dataDir).every((name) => OURS.test(name))) return;
    writeFileSync(join(dataDir, '.gitignore'), '*\n', { flag: 'wx' });
  } catch {
    // There is no folder, since nothing is kept in it, or it cannot be written: nothing is lost.
  }
}
