/**
 * Makes sure that what package-lock.json names is installed, before any other script runs.
 *
 * Plain JavaScript, because it is the only file that must run on whatever Node the machine has: the Node 24 that runs
 * everything else is itself one of the packages installed here. It must stay an npm script of its own ("pretest", …):
 * the shell of the script that follows looks `node` up anew and finds that one.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

if (!isInstalled()) {
  console.error('Installing dependencies (once)…');
  install();
}

/**
 * Compares versions, not file times: `npm ci` empties node_modules, so it must not run without need. Optional packages
 * may be missing, since most are for other platforms, but not be there in another version.
 */
function isInstalled() {
  const wanted = readPackages('package-lock.json');
  const present = readPackages('node_modules/.package-lock.json');
  if (wanted === undefined) throw new Error('package-lock.json is missing or is not JSON');
  if (present === undefined) return false;
  return Object.entries(wanted).every(([path, { version, optional }]) => {
    const there = present[path];
    return path === '' || (there === undefined ? optional === true : there.version === version);
  });
}

/** @param {string} file */
function readPackages(file) {
  try {
    return JSON.parse(readFileSync(`${root}${file}`, 'utf8')).packages;
  } catch {
    return undefined; // missing, or cut short by an install that was interrupted
  }
}

function install() {
  // Development packages always, also where NODE_ENV says production: Node 24 is one of them. Some of their programs
  // come as optional packages, one a platform.
  const args = ['ci', '--include=dev', '--include=optional', '--no-audit', '--no-fund', '--loglevel=error'];
  const npm = process.env.npm_execpath;
  const options = { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] };
  const { status, error } =
    npm === undefined
      ? spawnSync('npm', args, { ...options, shell: true })
      : spawnSync(process.execPath, [npm, ...args], options);
  if (error !== undefined) throw error;
  if (status !== 0) {
    console.error('The installation failed; the lines above say why. Run "npm ci" to see all of it.');
    process.exit(status ?? 1);
  }
}
