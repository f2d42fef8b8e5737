/** How does a test get a program of Debian's that the machine may not have? */
import { spawnSync } from 'node:child_process';

const INSTALL_LIMIT_MS = 180_000;

/** Debian has some programs where only root looks. */
export const DEBIAN_ENV = { PATH: `${process.env['PATH'] ?? ''}:/usr/sbin`, LC_ALL: 'C' };

/**
 * Why there is no such program here; undefined when there is. Installs its package, which mostly has its name, where the program is
 * missing and may be installed.
 */
export function obstacleTo(program: string, debianPackage = program): string | undefined {
  if (isInstalled(program)) return undefined;
  if (process.getuid?.() === 0) install(debianPackage);
  return isInstalled(program) ? undefined : `there is no ${program}, and it could not be installed`;
}

function isInstalled(program: string): boolean {
  return spawnSync(program, ['--version'], { env: DEBIAN_ENV }).status === 0;
}

/** Quietly, whatever comes of it. No server of the system's own is started: at run level 1 Debian's scripts start nothing. */
function install(debianPackage: string): void {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  const network = ['-o', 'Acquire::Retries=0', '-o', 'Acquire::http::Timeout=10'];
  const aptGet = (...args: string[]) =>
    spawnSync('apt-get', [...network, '-qq', ...args], { env, stdio: 'ignore', timeout: INSTALL_LIMIT_MS }).status ===
    0;
  const installed = () => aptGet('install', '-y', '--no-install-recommends', debianPackage);
  if (!installed() && aptGet('update')) installed();
}
