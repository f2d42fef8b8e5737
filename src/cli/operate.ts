/** How a command changes projects and tokens, and prints the result. */
import { nearest } from '../config/nearest.ts';
import { parseConfig } from '../config/parse.ts';
import { administer } from '../operations/administer.ts';
import type { Administration } from '../operations/socket/commands.ts';
import { CommandFailed, EXIT, nextStep, type Terminal } from './command.ts';

/** `settings`: the rest of the command line. Throws `ConfigError`, `CommandFailed` and `CannotStart`. */
export async function operate<T>(
  settings: readonly string[],
  { env }: Terminal,
  work: (on: Administration) => Promise<T>,
): Promise<T> {
  const config = parseConfig(env, settings);
  if (config.memory) throw new CommandFailed('a server with --memory has no data folder to work on', EXIT.usage);
  return administer(config, work);
}

export function printJson(terminal: Terminal, value: unknown): void {
  terminal.print(`${JSON.stringify(value, null, 2)}\n`);
}

/** Throws `CommandFailed` for an action that is not among `actions`. */
export function unknownAction(command: string, action: string, actions: readonly string[]): never {
  const hint = nextStep(nearest(action, actions), `waypost ${command} --help`);
  throw new CommandFailed(`${command}: there is no "${action}"; ${hint}`, EXIT.usage);
}

/** Throws `CommandFailed` when a required part of the command line is missing. */
export function required(value: string | undefined, what: string): string {
  if (value === undefined || value === '') throw new CommandFailed(`${what} is missing`, EXIT.usage);
  return value;
}
