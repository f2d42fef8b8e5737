/**
 * Reads and writes the profiles of "waypost login": servers with their tokens, in one file that only the owner can read.
 */
import { chmodSync, closeSync, fstatSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Environment } from '../../config/parse.ts';
import { makeFolder } from '../../system/folder.ts';
import { CommandFailed, EXIT } from '../command.ts';

export interface Profile {
  url: string;
  token: string;
}

/** The profile that is used if none is named. */
export const DEFAULT_PROFILE = 'default';

/** The file of the profiles; `undefined` if the environment has no home folder. */
export function profilesFileOf(env: Environment): string | undefined {
  const home = env['HOME'] || env['USERPROFILE'];
  const folder = env['XDG_CONFIG_HOME'] || (home && join(home, '.config'));
  return folder ? join(folder, 'waypost', 'profiles.json') : undefined;
}

/** The profiles by name. Throws `CommandFailed` if other users can read the file, or if the file is invalid. */
export function readProfiles(env: Environment): Map<string, Profile> {
  const file = profilesFileOf(env);
  const text = file === undefined ? undefined : readPrivate(file);
  if (text === undefined) return new Map();
  try {
    return new Map(Object.entries(JSON.parse(text) as Record<string, Profile>).map(checkedProfile));
  } catch {
    throw new CommandFailed(`${file}: is invalid; delete it and log in again`);
  }
}

/** Replaces all profiles. Throws `CommandFailed` if the profiles cannot be saved. */
export function saveProfiles(env: Environment, profiles: ReadonlyMap<string, Profile>): string {
  const file = profilesFileOf(env);
  if (file === undefined)
    throw new CommandFailed('there is no home folder to save a profile in: set HOME or XDG_CONFIG_HOME', EXIT.usage);
  try {
    writePrivate(file, `${JSON.stringify(Object.fromEntries(profiles), null, 2)}\n`);
  } catch (error) {
    throw new CommandFailed(
      `cannot save the profile: ${(error as Error).message}; set XDG_CONFIG_HOME to a folder of yours, or use QSTASH_URL and QSTASH_TOKEN`,
    );
  }
  return file;
}

function writePrivate(file: string, text: string): void {
  makeFolder(dirname(file));
  chmodSync(dirname(file), 0o700); // also for an existing folder
  const fresh = `${file}.${process.pid}`;
  writeFileSync(fresh, text, { mode: 0o600, flag: 'wx' });
  renameSync(fresh, file);
}

/**
 * Checks the mode of the opened file itself. Windows has no modes, but only the owner of a home folder can read the
 * folder.
 */
function readPrivate(file: string): string | undefined {
  let opened: number;
  try {
    opened = openSync(file, 'r');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new CommandFailed(`the profiles cannot be read: ${(error as Error).message}`);
  }
  try {
    if (process.platform !== 'win32' && (fstatSync(opened).mode & 0o077) !== 0)
      throw new CommandFailed(`${file} has tokens and is readable by others: chmod 600 ${file}`, EXIT.denied);
    return readFileSync(opened, 'utf8');
  } finally {
    closeSync(opened);
  }
}

function checkedProfile([name, { url, token }]: [string, Profile]): [string, Profile] {
  if (typeof url !== 'string' || typeof token !== 'string') throw new TypeError(name);
  return [name, { url, token }];
}
