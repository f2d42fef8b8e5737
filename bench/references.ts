/**
 * Installs the programs that the benchmarks compare with, on demand and in a folder of their own, so that the project never
 * depends on them.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Ignored by git. */
const FOLDER = fileURLToPath(new URL('./.references/', import.meta.url));

/**
 * `packages` are names, each with an optional `@` and version or range; the default is the newest version. Returns the
 * folder that contains them. Install scripts are not run.
 */
export function installReferences(packages: readonly string[], folder = FOLDER): string {
  mkdirSync(folder, { recursive: true });
  const args = ['install', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  const { status, stderr, error } = spawnSync('npm', [...args, ...packages.map(withVersion)], {
    encoding: 'utf8',
    shell: process.platform === 'win32', // npm is a .cmd file there
  });
  if (error) throw error;
  if (status !== 0) throw new Error(`npm could not install ${packages.join(', ')}:\n${stderr}`);
  return folder;
}

function withVersion(name: string): string {
  return name.lastIndexOf('@') > 0 ? name : `${name}@latest`; // an `@` at the start belongs to a scope
}

export function versionOf(folder: string, name: string): string {
  const text = readFileSync(join(folder, 'node_modules', name, 'package.json'), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}
