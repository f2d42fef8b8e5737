/** Builds the published files of packages/workflow: the compiled sources and the license. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const folder = `${root}packages/workflow/`;

rmSync(`${folder}dist`, { recursive: true, force: true });
copyFileSync(`${root}LICENSE`, `${folder}LICENSE`);
const { status } = spawnSync(`${root}node_modules/.bin/tsc`, ['-p', 'tsconfig.build.json'], {
  cwd: folder,
  stdio: 'inherit',
  shell: process.platform === 'win32',
});
process.exitCode = status ?? 1;
