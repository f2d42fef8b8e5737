/** A command, and how it talks to the person who typed it. */
import type { Environment } from '../config/parse.ts';

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
}

export interface Command {
  /** One line in the list of commands. */
  summary: string;
  /** What `--help` prints. */
  help(): string;
  /** Resolves to the exit code. Throws `CommandFailed`, `ConfigError` and `CannotStart` with what the user must know. */
  run(args: readonly string[], terminal: Terminal): Promise<number>;
}

export const EXIT = {
  ok: 0,
  failed: 1,
  /** The command line or the settings are wrong. */
  usage: 2,
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

/** The first argument, if it is a word (an action or a name), and the other arguments. */
export function takeWord(args: readonly string[]): { word: string | undefined; rest: readonly string[] } {
  const [word, ...rest] = args;
  return word === undefined || word.startsWith('--') ? { word: undefined, rest: args } : { word, rest };
}

/** Takes `--name` out of the arguments that are not settings. */
export function takeSwitch(args: readonly string[], flag: string): { given: boolean; rest: string[] } {
  return { given: args.includes(flag), rest: args.filter((arg) => arg !== flag) };
}

/** Takes `--name <value>` or `--name=<value>` out. Throws `CommandFailed` when the value is missing. */
export function takeValue(args: readonly string[], flag: string): { value: string | undefined; rest: string[] } {
  const at = args.findIndex((arg) => arg === flag || arg.startsWith(`${flag}=`));
  const arg = args[at];
  if (arg === undefined) return { value: undefined, rest: [...args] };
  if (arg !== flag) return { value: arg.slice(flag.length + 1), rest: args.toSpliced(at, 1) };
  const value = args[at + 1];
  if (value === undefined) throw new CommandFailed(`${flag}: needs a value`, EXIT.usage);
  return { value, rest: args.toSpliced(at, 2) };
}
