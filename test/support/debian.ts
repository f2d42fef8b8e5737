/** Installs Debian programs that tests need and the machine may not have. */
import { spawnSync } from 'node:child_process';

const INSTALL_LIMIT_MS = 180_000;

/** Some Debian programs are only in the search path of root. */
export const DEBIAN_ENV = { PATH: `${process.env['PATH'] ?? ''}:/usr/sbin`, LC_ALL: 'C' };

/**
 * Returns the reason why the program is not available, or `undefined` if the program is available. If the program is
 * missing and the user is root, installs `packages`, by default the package with the program's name. `proof`: arguments
 * with which the program exits with 0 if it has all required features.
 */
export function obstacleTo(
  program: string,
  packages: readonly string[] = [program],
  proof: readonly string[] = ['--version'],
): string | undefined {
  const isThere = () => spawnSync(program, proof, { env: DEBIAN_ENV }).status === 0;
  if (isThere()) return undefined;
  if (process.getuid?.() === 0) install(packages);
  return isThere() ? undefined : `there is no ${program}, and it could not be installed`;
}

/** Ignores errors and prints nothing. Starts no system services: at run level 1, Debian's scripts start nothing. */
function install(packages: readonly string[]): void {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  const options = [
    ...['-o', 'Acquire::Retries=0', '-o', 'Acquire::http::Timeout=10'],
    ...['-o', 'DPkg::Lock::Timeout=60'], // another test may be installing
    ...['-o', 'DPkg::Options::=--force-unsafe-io'], // no sync for each of ten thousand files
  ];
  const aptGet = (...args: string[]) =>
    spawnSync('apt-get', [...options, '-qq', ...args], { env, stdio: 'ignore', timeout: INSTALL_LIMIT_MS }).status ===
    0;
  const installed = () => aptGet('install', '-y', '--no-install-recommends', ...packages);
  if (!installed() && aptGet('update')) installed();
}
