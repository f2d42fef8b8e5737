/** The scenarios of the official library with ours instead, which then ends each call after one step, like the official one. */
import { readdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { importWithOurs, staleExceptions } from './ours.ts';

const scenarios = new URL('../workflows/', import.meta.url);

for (const name of readdirSync(scenarios).filter((each) => each.endsWith('.test.ts'))) {
  describe(name, async () => {
    await importWithOurs(new URL(name, scenarios));
  });
}

it('leaves out only what there is', () => {
  expect(staleExceptions()).toEqual([]);
});
