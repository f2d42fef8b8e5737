/**
 * Mutation testing: applies one small change to the code at a time, and reports the changes that no test detects:
 * `npm run mutate -- src/engine/messages/decide.ts`. No other script runs it, since a file takes minutes. By default it
 * runs the tests in the folder of test/ with the same name; `--tests` selects other tests:
 * `npm run mutate -- src/store/operations/claims/claim.ts --tests test/store/inline-sqlite.full.test.ts`.
 */
import { spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';

const { positionals: files, values } = parseArgs({
  allowPositionals: true,
  options: { tests: { type: 'string', multiple: true, default: [] } },
});
if (files.length === 0) throw new Error('usage: npm run mutate -- <file of src> [--tests <file of test>]');

const tests = values.tests.length > 0 ? values.tests : files.map((file) => `test/${file.split('/')[1]}/**/*.test.ts`);
const { status } = spawnSync('stryker', ['run', 'scripts/stryker.json', '--mutate', files.join(',')], {
  stdio: 'inherit',
  env: { ...process.env, WAYPOST_MUTATE_TESTS: [...new Set(tests)].join(',') },
});
process.exitCode = status ?? 1;
