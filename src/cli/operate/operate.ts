/** Runs an administrative command on projects and tokens. */

import type { Administration } from '../../admin/socket/commands.ts';
import { parseConfig } from '../../config/parse.ts';
import { CommandFailed, EXIT, type Terminal } from '../command.ts';

/** `settings`: the remaining arguments of the command line. Throws `ConfigError`, `CommandFailed` and `CannotStart`. */
export async function operate<T>(
  settings: readonly string[],
  { env }: Terminal,
  work: (administration: Administration) => Promise<T>,
): Promise<T> {
  const config = parseConfig(env, settings);
  if (config.memory) throw new CommandFailed('--memory has no data folder to work on', EXIT.usage);
  const { administer } = await import('../../admin/administer.ts'); // loaded on demand: help does not need this module
  return administer(config, work);
}
