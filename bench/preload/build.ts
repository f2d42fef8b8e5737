/**
 * Compiles a preload shim: a few lines of C that intercept libc calls of a process, so that a test can slow down,
 * break or record its file operations. Needs Linux and a C compiler.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface Shim {
  /** Environment variables for the process whose calls are intercepted. */
  env: Record<string, string>;
  remove(): void;
}

/** The reason why this machine cannot build a shim; undefined if it can. */
export function shimObstacle(): string | undefined {
  if (process.platform !== 'linux') return 'preload shims need Linux';
  return spawnSync('cc', ['--version']).status === 0 ? undefined : 'no C compiler (cc) on this machine';
}

/** Throws with the compiler's output if the source does not compile. */
export function buildShim(source: URL): Shim {
  const folder = mkdtempSync(join(tmpdir(), 'waypost-shim-'));
  const path = join(folder, `${basename(source.pathname, '.c')}.so`);
  const compiled = spawnSync(
    'cc',
    ['-shared', '-fPIC', '-O2', '-Wall', '-Werror', '-pthread', '-o', path, fileURLToPath(source), '-ldl'],
    { encoding: 'utf8' },
  );
  if (compiled.status !== 0) {
    rmSync(folder, { recursive: true });
    throw new Error(`cc failed:\n${compiled.stderr}`);
  }
  return { env: { LD_PRELOAD: path }, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** Adds `delayMs` to each fsync and fdatasync. */
export function buildSlowFsync(delayMs: number): Shim {
  const shim = buildShim(new URL('./slow-fsync.c', import.meta.url));
  return { ...shim, env: { ...shim.env, WAYPOST_FSYNC_DELAY_US: String(Math.round(delayMs * 1000)) } };
}
