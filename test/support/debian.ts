/** How does a test get a program of Debian's that the machine may not have? */
import { spawnSync } from 'node:child_process';

const INSTALL_LIMIT_MS = 180_000;

/** Debian has some programs where only root looks. */
export const DEBIAN_ENV = { PATH: `${process.env['PATH'] ?? ''}:/usr/sbin`, LC_ALL: 'C' };

/**
 * Why there is no such program here; undefined when there is. Installs its packages, by default the one of its name, where the program
 * is missing and may be installed. `proof`: arguments with which it ends with 0 when all that is wanted of it is there.
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

/** Quietly, whatever comes of it. No server of the system's own is started: at run level 1 Debian's scripts start nothing. */
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
