/** The interface of a command, its terminal, exit codes and errors. */
import { nearest } from '../config/nearest.ts';
import type { Environment } from '../config/parse.ts';
import type { Options } from './options.ts';
import { plainJson } from './plain.ts';

export interface Terminal {
  env: Environment;
  /** Prints whole lines on standard output. */
  print(text: string): void;
  /** Prints on standard error. */
  printError(text: string): void;
  /** Whether standard output is a terminal. */
  isInteractive: boolean;
  /** False when `NO_COLOR` is set, whatever its value. */
  color: boolean;
  /** Reads standard input to the end. */
  readInput(): Promise<Uint8Array>;
  /**
   * Prompts on standard error and reads a line, without echo for a secret. Absent unless a person can answer at a
   * terminal.
   */
  ask?: (question: string, isSecret?: 'secret') => Promise<string>;
}

export interface Command {
  /** The verbs with their meanings. The first argument may be a verb. Absent if the command has no verbs. */
  verbs?: Readonly<Record<string, string>>;
  /** The options that the help lists for a command line with the words `args`. */
  options(args: readonly string[]): Options;
  /** The output of `--help` for a command line with the words `args`. */
  help(args: readonly string[]): string;
  /** Resolves to the exit code. Throws `CommandFailed`, `ConfigError` and `CannotStart`, with messages for the user. */
  run(args: readonly string[], terminal: Terminal): Promise<number>;
}

/**
 * One line for the list of commands, and a function that loads the command. The list of commands thus loads no server.
 */
export type CommandEntry = readonly [summary: string, load: () => Promise<Command>];

export const EXIT = {
  ok: 0,
  failed: 1,
  /** The command line or the settings are wrong. */
  usage: 2,
  /** The named thing does not exist. */
  notFound: 3,
  /** No server responds, or the server cannot accept the request now. A retry may succeed. */
  unavailable: 4,
  /** The token is unknown, or does not allow the request. */
  denied: 5,
  /** The run that the command waited for was cancelled. */
  canceled: 6,
  /** The server exited because it could no longer trust its store. The supervisor should restart the server. */
  fatal: 70,
} as const;

/** Ends the command with one line on standard error. */
export class CommandFailed extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode: number = EXIT.failed) {
    super(message);
    this.name = 'CommandFailed';
    this.exitCode = exitCode;
  }
}

/** The hint after an unknown name: suggests the similar name `meant`, if there is one, and the command `help`. */
export function usageHint(meant: string | undefined, help: string): string {
  return meant === undefined ? `see ${help}` : `did you mean "${meant}"? See ${help}`;
}

export function printJson(terminal: Terminal, value: unknown): void {
  terminal.print(`${plainJson(value, 2)}\n`);
}

/** Returns the entry of `table` for `word`, but no inherited property such as `constructor` or `toString`. */
export function entryOf<T>(table: Readonly<Record<string, T>>, word: string): T | undefined {
  return Object.hasOwn(table, word) ? table[word] : undefined;
}

/** Throws `CommandFailed` for an action that is not among `actions`. */
export function unknownAction(command: string, action: string, actions: readonly string[]): never {
  const hint = usageHint(nearest(action, actions), `waypost ${command} --help`);
  throw new CommandFailed(`${command}: there is no "${action}"; ${hint}`, EXIT.usage);
}

/** Throws `CommandFailed` when a required part of the command line is missing. */
export function required(value: string | undefined, what: string): string {
  if (value === undefined || value === '') throw new CommandFailed(`${what} is missing`, EXIT.usage);
  return value;
}
