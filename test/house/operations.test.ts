/** Limits the number of files that name an operation of the store, and checks that its name is unique. */
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

it('a command to a flow-control key is named beside its SQL, where the API asks for it, and in its route', () => {
  const files = globSync('src/**/*.ts', { cwd: root }).map((file) => file.replaceAll('\\', '/'));
  const naming = files.filter((file) => /\bpinKey\b/.test(readFileSync(`${root}${file}`, 'utf8')));
  expect(naming.toSorted()).toEqual(['src/api/lanes/flow-control.ts', 'src/store/operations/lanes/flow-commands.ts']);
});

it('no two operations have the same name, of which the store would have one', async () => {
  const files = globSync('src/{store/operations,cells/store}/**/*.ts', { cwd: root }).filter(
    (file) => !file.endsWith('all.ts'),
  );
  const modules = await Promise.all(files.map((file) => import(`${root}${file}`)));
  const names = modules.flatMap((module) =>
    Object.entries<unknown>(module).flatMap(([name, value]) =>
      typeof value === 'function' && 'kind' in value ? [name] : [],
    ),
  );
  expect(names.length).toBeGreaterThan(50);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
});
