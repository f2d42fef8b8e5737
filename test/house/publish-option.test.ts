/**
 * Checks that an option of a publish is named only in the places that the recipe in docs/architecture.md lists, and where it
 * has its effects.
 */
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { ALL_OPTIONS, ATTEMPT_SETTINGS } from '../../src/protocol/options/config-options.ts';
import { stepsOf } from './recipe-steps.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string) => readFileSync(`${root}${file}`, 'utf8');

const STEPS = stepsOf('A publish option');

const EFFECTS = [
  'src/api/runs/run-log-views.ts', // the log of a run shows it together with its default
  'src/delivery/workflow-head.ts', // the library of a workflow is told of it
  'src/engine/messages/decide.ts', // a retry waits for it
];

it('the recipe has at most five steps, in files that exist', () => {
  expect(STEPS.length).toBeLessThanOrEqual(5);
  for (const path of STEPS) if (path) expect(globSync(path, { cwd: root }), path).toHaveLength(1);
});

it('a retry delay is named in its row, in the settings, and where it has its effects', () => {
  // The demo is a client: it gives the option like any other.
  const files = globSync('src/**/*.ts', { cwd: root }).filter((file) => !file.startsWith('src/cli/demo/'));
  const naming = files.filter((file) => /retryDelay/.test(read(file)));
  const declaring = STEPS.filter((path) => path?.startsWith('src/protocol/'));
  expect(naming.toSorted()).toEqual([...declaring, ...EFFECTS].toSorted());
});

it('a step of a run sets what belongs to attempts, and nothing else', () => {
  const members = /interface AttemptSettings \{(.*?)\n\}/s.exec(read('src/protocol/options/settings.ts'))?.[1] ?? '';
  const declared = [...members.matchAll(/^ {2}(\w+)\??:/gm)].map(([, member]) => member);
  expect(declared).toEqual(ATTEMPT_SETTINGS);
});

it('no two options are kept in the same setting', () => {
  const settings = ALL_OPTIONS.flatMap(({ setting = [] }) => setting);
  expect(settings).toEqual([...new Set(settings)]);
});
