import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { docsLink } from '../../src/config/docs-link.ts';
import { defaultOf } from '../../src/config/parse.ts';
import { listSettings } from '../../src/config/table.ts';

const ROOT = join(import.meta.dirname, '../..');

it.each([
  ['https://docs.example.com/waypost', 'https://docs.example.com/waypost/errors.html'],
  ['https://docs.example.com/', 'https://docs.example.com/errors.html'],
  ['', 'docs/errors.md'],
])('with the documentation at "%s" a link leads to %s', (docsUrl, link) => {
  expect(docsLink(docsUrl, 'errors')).toBe(link);
});

it('the documentation is at the homepage of the package, unless the setting says otherwise', () => {
  const { homepage = '' } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { homepage?: string };
  const row = listSettings().find(({ name }) => name === 'docsUrl');
  expect(row && defaultOf(row.setting, false)).toBe(homepage);
});

it('every page that a message names exists', () => {
  const sources = globSync('src/**/*.ts', { cwd: ROOT }).map((file) => readFileSync(join(ROOT, file), 'utf8'));
  const named = sources.flatMap((text) => [...text.matchAll(/docsLink\([^()]+, '([^']+)'\)/g)]).map(([, name]) => name);
  const pages = globSync('**/*.md', { cwd: join(ROOT, 'docs') }).map((file) => file.replaceAll('\\', '/'));
  expect(named).not.toEqual([]);
  expect(pages).toEqual(expect.arrayContaining(named.map((name) => `${name}.md`)));
});
