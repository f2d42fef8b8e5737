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
  const named = new Set<string>();
  return [...importsByFile.keys()].flatMap((file) => {
    if (named.has(file)) return [];
    const circle = shortestCircle(file, importsByFile);
    for (const each of circle) named.add(each);
    return circle.length === 0 ? [] : [circle.join(' -> ')];
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

/** The path from the first file to `file`. */
function wayTo(file: string, cameFrom: ReadonlyMap<string, string>): string[] {
  const before = cameFrom.get(file);
  return before === undefined ? [file] : [...wayTo(before, cameFrom), file];
}
