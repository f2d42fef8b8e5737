/**
 * Finds import cycles. Type imports count too: to understand one file of a cycle, a reader needs all files of the cycle.
 */
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { readImports } from './imports.ts';

/**
 * Returns `<file> -> <file> -> … -> <file>` for import cycles in `root`/src and in packages. A file that no
 * earlier line contains gets a line with its shortest cycle.
 */
export function findImportCircles(root: string): string[] {
  const importsByFile = readAllImports(root);
  const reported = new Set<string>();
  return [...importsByFile.keys()].flatMap((file) => {
    if (reported.has(file)) return [];
    const cycle = shortestCycle(file, importsByFile);
    for (const each of cycle) reported.add(each);
    return cycle.length === 0 ? [] : [cycle.join(' -> ')];
  });
}

/** The files that each file imports, sorted by name; paths are relative to `root`. */
function readAllImports(root: string): ReadonlyMap<string, readonly string[]> {
  const files = globSync(['src/**/*.ts', 'packages/*/src/**/*.ts'], { cwd: root }).toSorted();
  return new Map(
    files.map((file) => {
      const relative = readImports(join(root, file)).filter(({ target }) => target.startsWith('.'));
      return [file, relative.map(({ target }) => join(file, '..', target))];
    }),
  );
}

/**
 * Returns the shortest path from `start` back to `start`, including both ends, or an empty list if there is no such path.
 */
function shortestCycle(start: string, importsByFile: ReadonlyMap<string, readonly string[]>): string[] {
  const predecessors = new Map<string, string>();
  const reached = [start];
  for (const file of reached) {
    for (const next of importsByFile.get(file) ?? []) {
      if (next === start) return [...pathTo(file, predecessors), start];
      if (predecessors.has(next)) continue;
      predecessors.set(next, file);
      reached.push(next);
    }
  }
  return [];
}

/** The path from the first file to `file`. */
function pathTo(file: string, predecessors: ReadonlyMap<string, string>): string[] {
  const previous = predecessors.get(file);
  return previous === undefined ? [file] : [...pathTo(previous, predecessors), file];
}
