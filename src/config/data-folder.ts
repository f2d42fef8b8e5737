/** Keeps what is in a data folder, the encryption key above all, out of the repository that the folder lies in. */
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Files that Waypost makes there. */
const OURS = /^(waypost\.|encryption\.key$)/;

/** Writes a `.gitignore` of `*`, unless there is one or the folder is also somebody else's, whose files it would hide. */
export function keepOutOfGit(dataDir: string): void {
  try {
    if (!readdirSync(dataDir).every((name) => OURS.test(name))) return;
    writeFileSync(join(dataDir, '.gitignore'), '*\n', { flag: 'wx' });
  } catch {
    // No folder, because nothing is kept in it, or one that is not to be written: nothing is lost.
  }
}
