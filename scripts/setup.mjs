/**
 * Makes sure that what package-lock.json names is installed, before any other script runs. With the argument `console` it
 * also builds the console where that is missing or older than its sources.
 *
 * Plain JavaScript, because it is the only file that must run on whatever Node the machine has: the Node 24 that runs
 * everything else is itself one of the packages installed here. It must stay an npm script of its own ("pretest", …):
 * the shell of the script that follows looks `node` up anew and finds that one.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
/** What decides how the console looks and what it calls, and what the page of the interface does. */
const CONSOLE_SOURCES = [
  'console',
  'scripts/console-types.ts',
  'scripts/docs-page.ts',
  'test/api/openapi.digest',
  'package-lock.json',
];
/** From which sources dist/console was built. */
const BUILT_FROM = `${root}dist/console.built-from`;

if (!isInstalled()) {
  console.error('Installing dependencies (once)…');
  install();
}
if (process.argv[2] === 'console') {
  const sources = hashOf(CONSOLE_SOURCES);
  if (!existsSync(`${root}dist/console/index.html`) || readText(BUILT_FROM) !== sources) {
    console.error('Building the console (once)…');
    buildConsole();
    writeFileSync(BUILT_FROM, sources);
  }
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

/** @param {string} path */
function readText(path) {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
}

/**
 * Of names and contents, not of times: a copy of the folder and a change of branch and back need no build.
 *
 * @param {string[]} paths files and folders below the root
 */
function hashOf(paths) {
  const hash = createHash('sha256');
  for (const path of paths.flatMap(filesBelow)) hash.update(`${path}\n`).update(readFileSync(`${root}${path}`));
  return hash.digest('hex');
}

/**
 * @param {string} path
 * @returns {string[]}
 */
function filesBelow(path) {
  if (path === 'console/src/generated') return []; // made by the build
  if (!statSync(`${root}${path}`).isDirectory()) return [path];
  const names = readdirSync(`${root}${path}`).sort();
  return names.flatMap((name) => filesBelow(`${path}/${name}`));
}

function buildConsole() {
  const pinned = `${root}node_modules/node/bin/node${process.platform === 'win32' ? '.exe' : ''}`;
  // It is not there where the scripts of packages may not run: then the Node of the machine has to do.
  const node = existsSync(pinned) ? pinned : process.execPath;
  const { status } = spawnSync(node, ['scripts/build-console.ts'], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (status === 0) return;
  console.error('The console cannot be built; the lines above say why.');
  process.exit(status ?? 1);
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
