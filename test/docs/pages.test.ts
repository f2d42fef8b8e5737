/**
 * Checks that links of the pages lead to files and headings of the repository, the order of the site, and that commands name
 * existing scripts and tests.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { anchorOf } from '../../site/anchors.ts';
import { HOME, readSidebar, type SidebarItem } from '../../site/sidebar.ts';

const ROOT = join(import.meta.dirname, '../..');
const DOCS = join(ROOT, 'docs');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const pagesIn = (folder: string, ...patterns: string[]): string[] =>
  globSync(patterns, { cwd: folder, exclude: (name) => name === 'node_modules' }).map((page) =>
    page.replaceAll('\\', '/'),
  );
const PAGES = pagesIn(ROOT, '*.md', 'docs/**/*.md', 'examples/**/*.md', 'packages/*/*.md').toSorted();
/** Examples are no prose: a comment in one is no heading. */
const proseOf = (page: string): string => read(page).replaceAll(/^```.*?^```$/gms, '');

it('every link between pages leads to a page that is there, and to a heading that it has', () => {
  const broken: string[] = [];
  for (const page of PAGES) {
    for (const [, target = ''] of proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      const [path = '', anchor] = target.split('#');
      const file = path === '' ? page : join(dirname(page), path);
      const isThere = existsSync(join(ROOT, file));
      if (!isThere || (anchor !== undefined && !anchorsOf(file).includes(anchor))) broken.push(`${page}: ${target}`);
    }
  }
  expect(broken).toEqual([]);
});

it('the sidebar of the site lists every page of docs once, at most two clicks from the home page', () => {
  const listed = readSidebar(DOCS).flatMap(({ items }) => items.flatMap((item) => clicksTo(item, 1)));
  const pages = pagesIn(DOCS, '**/*.md').filter((page) => page !== HOME);
  expect(
    listed
      .map(([page]) => page)
      .filter((page) => !page.startsWith('../'))
      .toSorted(),
  ).toEqual(pages.toSorted());
  expect(listed.filter(([, clicks]) => clicks > 2)).toEqual([]);
});

it('the sidebar has the groups that readers look for', () => {
  expect(readSidebar(DOCS).map(({ text }) => text)).toEqual(['Start', 'Guides', 'Reference', 'Operate', 'Internals']);
});

it('the commands that repeat a proof name scripts and tests that are there', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  const commands = [...read('docs/how-it-is-tested.md').matchAll(/`(npm (?:run )?|node )([^`]+)`/g)];
  expect(commands.length).toBeGreaterThan(15);
  for (const [command, kind, rest = ''] of commands) {
    const words = rest.split(' ');
    const paths = words.filter((word) => /^(test|src)\//.test(word));
    expect([command, paths.filter((path) => !existsSync(join(ROOT, path)))]).toEqual([command, []]);
    if (kind !== 'node ') expect(Object.keys(scripts), command).toContain(words[0]);
  }
});

/** The groups are open; the pages below an item are shown by a click on it. */
function clicksTo({ page, items }: SidebarItem, clicks: number): [page: string, clicks: number][] {
  const below = items.flatMap((item) => clicksTo(item, clicks + 1));
  return page === undefined ? below : [[page, clicks], ...below];
}

/** Those of the site and of repository browsers: the second heading with the same text has `-1`. */
function anchorsOf(page: string): string[] {
  const times = new Map<string, number>();
  return [...proseOf(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => {
    const anchor = anchorOf(heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1'));
    const before = times.get(anchor) ?? 0;
    times.set(anchor, before + 1);
    return before === 0 ? anchor : `${anchor}-${before}`;
  });
}
