/**
 * Ensures that the packages of package-lock.json are installed, before any other script runs. With the argument `console`
 * it also builds the console if the build is missing or does not match the sources. With the argument `docs` it installs
 * only the packages that build the documentation.
 *
 * This is plain JavaScript, since it must run on any version of Node: the Node 24 that runs everything else is itself one of
 * the installed packages. This script must remain a separate npm script ("pretest", …), so that the shell of the next
 * script looks up `node` again and finds the installed one.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
/** The inputs of the build of the console and of the API page. */
const CONSOLE_SOURCES = [
  'console',
  'scripts/console-types.ts',
  'scripts/docs-page.ts',
  'test/api/openapi.digest',
  'package-lock.json',
];
/** Stores the hash of the sources from which dist/console was built. */
const BUILT_FROM = `${root}dist/console.built-from`;

const folder = process.argv[2] === 'docs' ? 'site/' : '';
if (!areInstalled(folder)) {
  console.error('Installing dependencies (once)…');
  install(folder);
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
 * Compares versions instead of file times, since an unnecessary `npm ci` would empty node_modules. Optional packages
 * may be missing, as most are for other platforms, but must not have a different version.
 *
 * @param {string} folder
 */
function areInstalled(folder) {
  const wanted = readPackages(`${folder}package-lock.json`);
  const present = readPackages(`${folder}node_modules/.package-lock.json`);
  if (wanted === undefined) throw new Error(`${folder}package-lock.json is missing or is not JSON`);
  if (present === undefined) return false;
  return Object.entries(wanted).every(([path, { version, optional }]) => {
    const installed = present[path];
    return path === '' || (installed === undefined ? optional === true : installed.version === version);
  });
}

/** @param {string} file */
function readPackages(file) {
  try {
    return JSON.parse(readFileSync(`${root}${file}`, 'utf8')).packages;
  } catch {
    return undefined; // missing, or truncated by an interrupted install
  }
}

/** @param {string} path */
function readText(path) {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
}

/**
 * Hashes names and contents, not times, so that copying the folder or switching branches back and forth needs no build.
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
  if (path === 'console/src/generated') return []; // The build generates it.
  if (!statSync(`${root}${path}`).isDirectory()) return [path];
  const names = readdirSync(`${root}${path}`).sort();
  return names.flatMap((name) => filesBelow(`${path}/${name}`));
}

function buildConsole() {
  const pinned = `${root}node_modules/node/bin/node${process.platform === 'win32' ? '.exe' : ''}`;
  // If install scripts of packages may not run, the pinned Node is missing, and the machine's Node is used.
  const node = existsSync(pinned) ? pinned : process.execPath;
  const { status } = spawnSync(node, ['scripts/build-console.ts'], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  if (status === 0) return;
  console.error('Building the console failed; see the lines above.');
  process.exit(status ?? 1);
}

/** @param {string} folder */
function install(folder) {
  // Always includes development packages, even with NODE_ENV=production, since Node 24 is one of them. Some programs of
  // these packages are in optional packages, one per platform.
  const args = ['ci', '--include=dev', '--include=optional', '--no-audit', '--no-fund', '--loglevel=error'];
  const npm = process.env.npm_execpath;
  const options = { cwd: `${root}${folder}`, stdio: ['ignore', 'ignore', 'inherit'] };
  const { status, error } =
    npm === undefined
      ? spawnSync('npm', args, { ...options, shell: true })
      : spawnSync(process.execPath, [npm, ...args], options);
  if (error !== undefined) throw error;
  if (status !== 0) {
    console.error('The installation failed; see the lines above. Run "npm ci" for the full output.');
    process.exit(status ?? 1);
  }
}
