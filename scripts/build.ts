/**
 * `npm run build`: builds dist/ for the published package: the compiled sources,
 * the operations of the command line, and the console.
 */
import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { deriveOperations } from '../src/cli/http/derived-operations.ts';
import { declareTesting } from './declarations.ts';

const root = fileURLToPath(new URL('..', import.meta.url));

rmSync(`${root}dist`, { recursive: true, force: true });
run(`${root}node_modules/.bin/tsc`, ['-p', 'tsconfig.build.json']);
run(`${root}node_modules/.bin/tsc`, declareTesting('dist/testing'));
writeFileSync(`${root}dist/cli/http/operations.json`, JSON.stringify(deriveOperations()));
run(process.execPath, ['scripts/build-console.ts']);

function run(program: string, args: string[]): void {
  const { status } = spawnSync(program, args, { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
