/** Do the pages lead somewhere? Links to files and headings of the repository, and commands that name scripts and tests. */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const PAGES = ['*.md', 'docs/*.md', 'docs/{quick-starts,recipes}/*.md']
  .flatMap((pages) => globSync(pages, { cwd: ROOT }))
  .toSorted();

it('every link between pages leads to a page that is there, and to a heading that it has', () => {
  const broken: string[] = [];
  for (const page of PAGES) {
    const text = read(page).replaceAll(/^```.*?^```$/gms, '');
    for (const [, target = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      const [path = '', anchor] = target.split('#');
      const file = path === '' ? page : join(dirname(page), path);
      const isThere = existsSync(join(ROOT, file));
      if (!isThere || (anchor !== undefined && !anchorsOf(file).includes(anchor))) broken.push(`${page}: ${target}`);
    }
  }
  expect(broken).toEqual([]);
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

/** As GitHub makes them. */
function anchorsOf(file: string): string[] {
  return [...read(file).matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
    title
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replaceAll(' ', '-'),
  );
}
