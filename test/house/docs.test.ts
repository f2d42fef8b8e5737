/** Checks that the settings and scripts in the documents exist. Links: test/docs/pages.test.ts. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { isSecret, variableOf } from '../../src/config/setting.ts';
import { listSettings } from '../../src/config/table.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

const documents = [
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ...['docs', 'examples'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  ),
].filter((name) => name.endsWith('.md'));

describe.each(documents)('%s', (name) => {
  const text = readFileSync(join(root, name), 'utf8');

  it('names only settings that there are', () => {
    const known = new Set(listSettings().flatMap(({ name: setting }) => variableOf(setting)));
    for (const { name: setting, setting: row } of listSettings()) {
      if (isSecret(row)) known.add(`${variableOf(setting)}_FILE`);
    }
    const named = [...text.matchAll(/\bWAYPOST_[A-Z_]+[A-Z]\b(?!\*)/g)].map(([variable]) => variable);
    expect(named.filter((variable) => !known.has(variable))).toEqual([]);
  });

  it('names only scripts that there are', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      scripts: Record<string, string>;
    };
    const named = [...text.matchAll(/\bnpm run (?:-s )?([a-z][a-z-]*)/g)].map(([, script = '']) => script);
    expect(named.filter((script) => scripts[script] === undefined)).toEqual([]);
  });
});
