/** Which files import each other? Types count too: who reads one file of a circle has to read all of them. */
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { readImports } from './imports.ts';

/**
 * `<file> -> <file> -> … -> <file>` of circles of imports in `root`/src and in packages: each file that lies on one is
 * named, by its shortest way round where no line before has it.
 */
export function findImportCircles(root: string): string[] {
  const importsByFile = readAllImports(root);
  const named = new Set<string>();
  return [...importsByFile.keys()].flatMap((file) => {
    if (named.has(file)) return [];
    const circle = shortestCircle(file, importsByFile);
    for (const each of circle) named.add(each);
    return circle.length === 0 ? [] : [circle.join(' -> ')];
  });
}

/** Files that each imports, in the order of their names; paths begin at `root`. */
function readAllImports(root: string): ReadonlyMap<string, readonly string[]> {
  const files = globSync(['src/**/*.ts', 'packages/*/src/**/*.ts'], { cwd: root }).toSorted();
  return new Map(
    files.map((file) => {
      const relative = readImports(join(root, file)).filter(({ target }) => target.startsWith('.'));
      return [file, relative.map(({ target }) => join(file, '..', target))];
    }),
  );
}

/** From `start` back to it, both named; empty when no way leads back. */
function shortestCircle(start: string, importsByFile: ReadonlyMap<string, readonly string[]>): string[] {
  const cameFrom = new Map<string, string>();
  const reached = [start];
  for (const file of reached) {
    for (const next of importsByFile.get(file) ?? []) {
      if (next === start) return [...wayTo(file, cameFrom), start];
      if (cameFrom.has(next)) continue;
      cameFrom.set(next, file);
      reached.push(next);
    }
  }
  return [];
}

/** All files from the first one to `file`. */
function wayTo(file: string, cameFrom: ReadonlyMap<string, string>): string[] {
  const before = cameFrom.get(file);
  return before === undefined ? [file] : [...wayTo(before, cameFrom), file];
}
