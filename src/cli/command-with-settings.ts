/**
 * Creates commands that run a server or work on the store of a server. These commands also accept the server's settings
 * as options.
 */
import { readArguments } from '../config/arguments.ts';
import { settingOptions, settingsHelp, storeSettingsHelp } from '../config/page.ts';
import { ConfigError, settingFlags } from '../config/parse.ts';
import { type Command, entryOf, required, type Terminal, unknownAction } from './command.ts';
import { type Options, optionRulesOf, optionsHelp } from './options.ts';

interface Definition {
  /** The part of the help above the options. */
  about: string;
  options?: Options;
  /**
   * Which settings the help lists: the settings of a store, all settings with the defaults of `serve` or `dev`, or none.
   * Absent: the command accepts no settings.
   */
  settings?: 'store' | 'serve' | 'dev' | 'unlisted';
  /** A command line that works, without the program's name. */
  example: string;
}

/** The arguments of a command. */
export interface ParsedCommand {
  /** The argument that the action requires; `''` if the action requires no argument. */
  word: string;
  has(option: string): boolean;
  value(option: string): string | undefined;
  /**
   * The settings among the arguments and any unexpected words, for `parseConfig`, which reports both kinds of mistakes.
   */
  settings: string[];
}

type Run = (parsed: ParsedCommand, terminal: Terminal) => Promise<number>;

/** `word` describes the argument that must follow the name of the action. */
export type Action = readonly [meaning: string, run: Run, word?: string];

/**
 * Creates the command `name`. If the command has several actions, the first argument selects the action; the default is
 * `list`.
 */
export function commandWithSettings(
  name: string,
  definition: Definition,
  run: Run | Readonly<Record<string, Action>>,
): Command {
  return {
    ...(typeof run === 'object' && {
      verbs: Object.fromEntries(Object.entries(run).map(([verb, [meaning]]) => [verb, meaning])),
    }),
    options: () => ({ ...definition.options, ...listedSettings(definition.settings) }),
    help: () => helpOf(definition),
    async run(args, terminal) {
      const { words, parsed } = parseArguments(args, definition);
      if (typeof run === 'function') return run(withWord('', words, parsed), terminal);
      const [verb = 'list', ...others] = words;
      const action = entryOf(run, verb) ?? unknownAction(name, verb, Object.keys(run));
      const word = action[2] === undefined ? '' : required(others.shift(), `${name} ${verb}: ${action[2]}`);
      return action[1](withWord(word, others, parsed), terminal);
    },
  };
}

/**
 * Throws `ConfigError`. Reports a mistyped option before a missing option, since the typing mistake explains why the
 * option is missing.
 */
function parseArguments(args: readonly string[], { options = {}, settings }: Definition) {
  const ownRules = optionRulesOf(options);
  const found = readArguments(args, settings ? new Map([...settingFlags(), ...ownRules]) : ownRules);
  const values = new Map<string, string | undefined>();
  const rest: string[] = [];
  const { words, problems } = found;
  for (const { name, flag, value } of found.options) {
    if (!ownRules.has(name)) rest.push(value === undefined ? flag : `${flag}=${value}`);
    else if (values.has(name)) problems.push(`${flag}: given more than once`);
    else values.set(name, value);
  }
  if (!settings) problems.push(...words.map((word) => `${word}: not expected here`));
  if (problems.length > 0) throw new ConfigError(problems);
  const has = (option: string) => values.has(option);
  return { words, parsed: { has, value: (option: string) => values.get(option), settings: rest } };
}

function withWord(word: string, others: readonly string[], parsed: Omit<ParsedCommand, 'word'>): ParsedCommand {
  return { ...parsed, word, settings: [...others, ...parsed.settings] };
}

function listedSettings(settings: Definition['settings']): Options {
  return settings === undefined || settings === 'unlisted' ? {} : settingOptions(settings);
}

function helpOf({ about, options = {}, settings, example }: Definition): string {
  const isStore = settings === 'store';
  const listed = settings === 'serve' || settings === 'dev' ? `\n${settingsHelp(settings === 'dev')}` : '';
  const own = optionsHelp(options).map((line) => `${line}\n`);
  const all = `${own.join('')}${isStore ? storeSettingsHelp() : ''}`;
  return `${about}\n\n${all}${all === '' ? '' : '\n'}Example: waypost ${example}\n${listed}`;
}
