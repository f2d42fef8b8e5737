/** Finds import cycles. Type imports count too: to understand one file of a cycle, one has to read all of them. */
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { readImports } from './imports.ts';

/**
 * Returns `<file> -> <file> -> … -> <file>` for import cycles in `root`/src and in packages. Each file of a cycle is listed once,
 * with its shortest cycle unless an earlier line already contains it.
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

/** The shortest path from `start` back to itself, including both ends; empty if there is none. */
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
