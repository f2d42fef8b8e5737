/** `npm run build`: compiles src/ to dist/ for the published package, from nothing, with the files tsc does not copy. */
import { spawnSync } from 'node:child_process';
import { cpSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

rmSync(`${root}dist`, { recursive: true, force: true });
const { status } = spawnSync(`${root}node_modules/.bin/tsc`, ['-p', 'tsconfig.build.json'], {
  cwd: root,
  stdio: 'inherit',
});
if (status !== 0) process.exit(status ?? 1);
cpSync(`${root}src`, `${root}dist`, { recursive: true, filter: (path) => !path.endsWith('.ts') });
