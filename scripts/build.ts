/**
 * `npm run build`: makes dist/ for the published package, from nothing: src/ compiled, with the files tsc does not copy,
 * and the console.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, globSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

rmSync(`${root}dist`, { recursive: true, force: true });
run(`${root}node_modules/.bin/tsc`, ['-p', 'tsconfig.build.json']);
for (const path of globSync('dist/**/*.d.ts', { cwd: root })) {
  if (!/^dist.testing.(types|waypost)\.d\.ts$/.test(path)) rmSync(`${root}${path}`);
}
cpSync(`${root}src`, `${root}dist`, { recursive: true, filter: (path) => !path.endsWith('.ts') });
run(process.execPath, ['scripts/build-console.ts']);

function run(program: string, args: string[]): void {
  const { status } = spawnSync(program, args, { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exit(status ?? 1);
}
