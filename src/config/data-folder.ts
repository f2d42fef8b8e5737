/** Keeps a data folder's contents, above all the encryption key, out of a Git repository that contains the folder. */
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Files that Waypost creates in the data folder. */
const OURS = /^(waypost\.|encryption\.key(\.new-|$))/;

/** Writes a `.gitignore` with `*`, unless the folder already has a `.gitignore` or also has files of other programs. */
export function keepOutOfGit(dataDir: string): void {
  try {
    if (!readdirSync(dataDir).every((name) => OURS.test(name))) return;
    writeFileSync(join(dataDir, '.gitignore'), '*\n', { flag: 'wx' });
  } catch {
    // The folder does not exist or is not writable, so Waypost stores nothing in the folder.
  }
}
