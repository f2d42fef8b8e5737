/** Checks that a column is named only in the places that the recipe in docs/architecture.md lists. */
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { stepsOf } from './recipe-steps.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string) => readFileSync(`${root}${file}`, 'utf8');

const STEPS = stepsOf('A new column');

it('the recipe for a column has at most five steps', () => {
  expect(STEPS.length).toBeGreaterThan(0);
  expect(STEPS.length).toBeLessThanOrEqual(5);
});

it('the column of the example is named in all files of the recipe, and in no other below the API', () => {
  const files = globSync('src/{store,engine}/**/*.ts', { cwd: root }).map((file) => file.replaceAll('\\', '/'));
  const naming = files.filter((file) => /\b(catch_up|catchUp)\b/.test(read(file)));
  expect(naming.toSorted()).toEqual(STEPS.toSorted());
});
