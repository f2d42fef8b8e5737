/** The check finds files that import each other, even if only for a type. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { findImportCircles } from '../../scripts/import-circles.ts';
import { testFolder } from '../support/folder.ts';

describe('the search for circles of imports', () => {
  let root: string;
  beforeEach(() => {
    root = testFolder();
  });

  function circlesOf(sources: Readonly<Record<string, string>>): string[] {
    for (const [file, source] of Object.entries(sources)) {
      mkdirSync(dirname(join(root, file)), { recursive: true });
      writeFileSync(join(root, file), source);
    }
    return findImportCircles(root);
  }

  it.each([
    "import type { B } from './inner/b.ts';",
    "import { type B, b } from './inner/b.ts';",
    "export type { B } from './inner/b.ts';",
    "export * from './inner/b.ts';",
    "export type A = import('./inner/b.ts').B;",
    "export const b = await import('./inner/b.ts');",
  ])('sees the one that %s closes', (statement) => {
    expect(circlesOf({ 'src/a.ts': statement, 'src/inner/b.ts': "import type { A } from '../a.ts';" })).toEqual([
      'src/a.ts -> src/inner/b.ts -> src/a.ts',
    ]);
  });

  it('names each file of a circle, by the shortest way round', () => {
    const sources = {
      'src/a.ts': "import './b.ts';",
      'src/b.ts': "import './c.ts';\nimport './d.ts';",
      'src/c.ts': "import './d.ts';",
      'src/d.ts': "import type { A } from './a.ts';",
    };
    expect(circlesOf(sources)).toEqual([
      'src/a.ts -> src/b.ts -> src/d.ts -> src/a.ts',
      'src/c.ts -> src/d.ts -> src/a.ts -> src/b.ts -> src/c.ts',
    ]);
  });

  it('shows each circle once, and none of the files that lead to one', () => {
    const sources = {
      'src/a.ts': "import './b.ts';",
      'src/b.ts': "import './c.ts';\nimport './d.ts';",
      'src/c.ts': "import './b.ts';",
      'src/d.ts': "import './e.ts';",
      'src/e.ts': "import './d.ts';",
      'src/f.ts': "import './f.ts';",
    };
    expect(circlesOf(sources)).toEqual([
      'src/b.ts -> src/c.ts -> src/b.ts',
      'src/d.ts -> src/e.ts -> src/d.ts',
      'src/f.ts -> src/f.ts',
    ]);
  });

  it('looks into packages, too', () => {
    const sources = { 'packages/p/src/a.ts': "import './b.ts';", 'packages/p/src/b.ts': "import './a.ts';" };
    expect(circlesOf(sources)).toEqual(['packages/p/src/a.ts -> packages/p/src/b.ts -> packages/p/src/a.ts']);
  });

  it('allows two ways to one file', () => {
    const sources = {
      'src/a.ts': "import './b.ts';\nimport './c.ts';",
      'src/b.ts': "import './c.ts';",
      'src/c.ts': "import { readFileSync } from 'node:fs';",
    };
    expect(circlesOf(sources)).toEqual([]);
  });
});
