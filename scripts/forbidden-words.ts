/** Finds notes about unfinished work, which belong in the issue tracker. */
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

// Concatenated, so that this file does not match itself.
const FORBIDDEN = new RegExp(`\\b(${['TO' + 'DO', 'FIX' + 'ME', 'XX' + 'X'].join('|')})\\b`);

const FOLDERS_EXCLUDED = new Set(['node_modules', '.git', 'dist', 'coverage', '.waypost']);
const TEXT_FILES = /\.(m?ts|mjs|js|jsonc?|md|sql|sh|grit|ya?ml)$|\/\.ci\/run$/;
const FILES_EXCLUDED = new Set(['package-lock.json']);

/** Returns `<file>:<line>: <text>` for each line below `root` with a forbidden word. */
export function findForbiddenWords(root: string): string[] {
  const found: string[] = [];
  for (const file of listFiles(root)) {
    const name = relative(root, file);
    if (FILES_EXCLUDED.has(name)) continue;
    for (const [index, line] of readFileSync(file, 'utf8').split('\n').entries()) {
      if (FORBIDDEN.test(line)) found.push(`${name}:${index + 1}: ${line.trim()}`);
    }
  }
  return found;
}

function listFiles(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return FOLDERS_EXCLUDED.has(entry.name) ? [] : listFiles(path);
    return TEXT_FILES.test(path) ? [path] : [];
  });
}
