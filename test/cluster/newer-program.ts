/** A checkout of a future version: a copy of this one whose schema has one more migration. */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MIGRATIONS } from '../../src/store/migrations/index.ts';

const CHECKOUT = fileURLToPath(new URL('../..', import.meta.url));
const COPIED = ['bin', 'src', 'package.json'];

export interface NewerProgram {
  /** The folder of the checkout. */
  folder: string;
  remove(): void;
}

/**
 * The migration adds a column and an index. With `breaking`, the current program must not run on a database with this
 * migration.
 */
export function makeNewerProgram(breaking: boolean): NewerProgram {
  const folder = mkdtempSync(join(tmpdir(), 'waypost-newer-'));
  for (const name of COPIED) cpSync(join(CHECKOUT, name), join(folder, name), { recursive: true });
  symlinkSync(join(CHECKOUT, 'node_modules'), join(folder, 'node_modules'));
  const number = MIGRATIONS.length + 1;
  writeFileSync(
    join(folder, 'src/store/migrations/next.ts'),
    `import type { Migration } from './index.ts';
export const next: Migration = {
  number: ${number},
  name: 'next',
  breaking: ${breaking},
  statements: () => [
    'alter table messages add column colour text',
    'create index messages_coloured on messages (project_id, key) where colour is not null',
  ],
};
`,
  );
  const list = join(folder, 'src/store/migrations/index.ts');
  const before = readFileSync(list, 'utf8');
  const after = before
    .replace(/(MIGRATIONS: readonly Migration\[\] = \[[^\]]*[^\],\s]),?\s*\]/, '$1, next]')
    .replace(/\nimport /, "\nimport { next } from './next.ts';\nimport ");
  if (after.split('next').length !== before.split('next').length + 3)
    throw new Error(`no list of migrations in ${list}`);
  writeFileSync(list, after);
  return { folder, remove: () => rmSync(folder, { recursive: true }) };
}
