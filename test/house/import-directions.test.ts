/** The check of import directions finds every kind of import, and refuses the wrong directions. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { findWrongImports } from '../../scripts/import-directions.ts';
import { testFolder } from '../support/folder.ts';

describe('the import directions', () => {
  let root: string;
  beforeEach(() => {
    root = testFolder();
  });

  function problemsOf(file: string, source: string): string[] {
    mkdirSync(dirname(join(root, file)), { recursive: true });
    writeFileSync(join(root, file), source);
    return findWrongImports(root);
  }

  it.each([
    ['src/protocol/x.ts', '../engine/model.ts', 'engine'],
    ['src/engine/x.ts', '../api/app.ts', 'api'],
    ['src/engine/x.ts', '../store/driver.ts', 'store'],
    ['src/engine/x.ts', '../delivery/delivery.ts', 'delivery'],
    ['src/engine/x.ts', '../config/table.ts', 'config'],
    ['src/engine/x.ts', '../server/server.ts', 'server'],
    ['src/engine/runs/x.ts', '../../store/driver.ts', 'store'],
    ['src/api/x.ts', '../store/driver.ts', 'store'],
    ['src/api/x.ts', '../cli/main.ts', 'cli'],
    ['src/store/x.ts', '../delivery/delivery.ts', 'delivery'],
    ['src/delivery/x.ts', '../store/driver.ts', 'store'],
    ['src/config/x.ts', '../cli/main.ts', 'cli'],
    ['src/telemetry/x.ts', '../server/server.ts', 'server'],
    ['src/server/x.ts', '../cli/main.ts', 'cli'],
    ['src/system/x.ts', '../server/server.ts', 'server'],
    ['src/admin/x.ts', '../server/server.ts', 'server'],
    ['src/cli/x.ts', '../../test/support/simulated-clock.ts', 'test/support/simulated-clock.ts'],
    ['src/engine/x.ts', '../../test/engine/fixtures.ts', 'test/engine/fixtures.ts'],
    ['src/engine/x.ts', 'node:fs', 'node:fs'],
    ['src/engine/x.ts', 'undici', 'undici'],
    ['src/delivery/x.ts', 'pino', 'pino'],
    ['src/api/x.ts', 'node:sqlite', 'node:sqlite'],
  ])('refuse in %s an import of %s', (file, target, wanted) => {
    expect(problemsOf(file, `import { a } from '${target}';\n`)).toEqual([
      expect.stringContaining(`${file}:1: ${file.split('/')[1]} may not import ${wanted}, only `),
    ]);
  });

  it.each([
    "import '../store/driver.ts';",
    "import type { Driver } from '../store/driver.ts';",
    "export type { Driver } from '../store/driver.ts';",
    "export * from '../store/driver.ts';",
    "export const driver = await import('../store/driver.ts');",
    'export const driver = await import(`../store/driver.ts`);',
    "export type Driver = import('../store/driver.ts').Driver;",
    "export const name: typeof import('../store/driver.ts') | undefined = undefined;",
  ])('see %s', (statement) => {
    expect(problemsOf('src/engine/x.ts', `// a first line\n${statement}\n`)).toEqual([
      expect.stringContaining('src/engine/x.ts:2: engine may not import '),
    ]);
  });

  it('refuse a folder that nobody gave a row', () => {
    expect(problemsOf('src/misc/x.ts', 'export const a = 1;\n')).toEqual([
      'src/misc/x.ts: src/misc has no row in scripts/import-directions.ts',
    ]);
  });

  it.each([
    ['src/store/x.ts', "export type { Message } from '../engine/model.ts';"],
    ['src/store/drivers/x.ts', "import { a } from '../driver.ts';"],
    ['src/engine/x.ts', "import type { Store } from '../store/store.ts';"],
    ['src/engine/x.ts', "import { createHash } from 'node:crypto';"],
    ['src/cli/x.ts', "import { readFileSync } from 'node:fs';"],
    ['src/server/worker.ts', "import { a } from './delivery/delivery.ts';"],
    ['src/engine/x.ts', "export const text = \"import '../store/driver.ts'\"; // import '../store/driver.ts'"],
  ])('allow in %s: %s', (file, statement) => {
    expect(problemsOf(file, `${statement}\n`)).toEqual([]);
  });
});
