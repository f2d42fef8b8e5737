/** `npm run check`: all static checks. `.ci/run` runs the same. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { writeConsoleTypes } from './console-types.ts';
import { findForbiddenWords } from './forbidden-words.ts';
import { findImportCircles } from './import-circles.ts';
import { findWrongImports } from './import-directions.ts';
import { findUnusedWords } from './unused-words.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

const checks: { name: string; run: () => string }[] = [
  { name: 'types', run: () => tool('tsc', ['--noEmit', '-p', '.']) },
  { name: 'types of the console', run: () => tool('tsc', ['--noEmit', '-p', 'console']) },
  { name: 'types of the workflow library', run: () => tool('tsc', ['--noEmit', '-p', 'packages/workflow']) },
  // The lint rules include the bans on clocks, timers and randomness, and on sleeping in tests.
  {
    name: 'lint, formatting',
    run: () => tool('biome', ['check', '--error-on-warnings', '--max-diagnostics=200', '.']),
  },
  { name: 'import directions', run: () => findWrongImports(root).join('\n') },
  { name: 'no circles of imports', run: () => findImportCircles(root).join('\n') },
  { name: 'unused files, exports and packages', run: () => tool('knip', []) },
  { name: 'no words that the glossary replaces', run: () => findUnusedWords(root).join('\n') },
  { name: 'no words of unfinished work', run: () => findForbiddenWords(root).join('\n') },
];

// Generated first, since the types and tests of the console need them.
writeConsoleTypes();
let failed = 0;
for (const check of checks) {
  const problems = check.run();
  console.log(`${problems === '' ? 'ok  ' : 'FAIL'} ${check.name}`);
  if (problems === '') continue;
  failed += 1;
  console.log(problems);
}
process.exitCode = failed === 0 ? 0 : 1;

/** The tool's output if it failed; otherwise an empty string. */
function tool(name: string, args: string[]): string {
  const { status, stdout, stderr, error } = spawnSync(`${root}node_modules/.bin/${name}`, args, {
    cwd: root,
    encoding: 'utf8',
    shell: process.platform === 'win32', // programs of packages are .cmd files there
  });
  if (error !== undefined) throw error;
  return status === 0 ? '' : `${stdout}${stderr}`.trim() || `${name} exited with ${status}`;
}
