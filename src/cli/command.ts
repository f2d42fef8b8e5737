/** A command, and how it talks to the person who typed it. */
import { nearest } from '../config/nearest.ts';
import type { Environment } from '../config/parse.ts';
import type { Options } from './options.ts';
import { plainJson } from './plain.ts';

export interface Terminal {
  env: Environment;
  /** Standard output. Whole lines. */
  print(text: string): void;
  /** Standard error. */
  complain(text: string): void;
  /** Whether standard output is a terminal. */
  isInteractive: boolean;
  /** False when `NO_COLOR` is set, whatever its value. */
  color: boolean;
  /** Standard input, to its end. */
  readInput(): Promise<Uint8Array>;
  /** Asks on standard error and reads a line, unseen if it is a secret; absent where nobody sits at both ends. */
  ask?: (question: string, isSecret?: 'secret') => Promise<string>;
}

export interface Command {
  /** The words that may come first, each with what it does; absent where there are none. */
  verbs?: Readonly<Record<string, string>>;
  /** The options behind the words `args`, as far as the help lists them. */
  options(args: readonly string[]): Options;
  /** What `--help` prints behind the words `args`. */
  help(args: readonly string[]): string;
  /** Resolves to the exit code. Throws `CommandFailed`, `ConfigError` and `CannotStart` with what the user must know. */
  run(args: readonly string[], terminal: Terminal): Promise<number>;
}

/** One line for the list of commands, and the command. Loaded on demand, so that no help loads a server. */
export type Entry = readonly [summary: string, load: () => Promise<Command>];

export const EXIT = {
  ok: 0,
  failed: 1,
  /** The command line or the settings are wrong. */
  usage: 2,
  /** What is named does not exist. */
  notFound: 3,
  /** No server answers, or it cannot take the request now. Trying again later may help. */
  unavailable: 4,
  /** The token is not known, or may not do this. */
  denied: 5,
  /** What was waited for was cancelled. */
  canceled: 6,
  /** The server ended because it could not trust its store any more; start it again. */
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

/** The hint for a name that does not exist: the `meant` name, or the command `help`. */
export function nextStep(meant: string | undefined, help: string): string {
  return meant === undefined ? `see ${help}` : `did you mean "${meant}"? See ${help}`;
}

export function printJson(terminal: Terminal, value: unknown): void {
  terminal.print(`${plainJson(value, 2)}\n`);
}

/** The entry of `table` that was typed. Every object has a `constructor` and a `toString`, which nobody means. */
export function entryOf<T>(table: Readonly<Record<string, T>>, word: string): T | undefined {
  return Object.hasOwn(table, word) ? table[word] : undefined;
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
