/** Defines verbs that send requests to a server, and combines them into commands. */
import { readArguments } from '../../config/arguments.ts';
import { ConfigError } from '../../config/parse.ts';
import { columns } from '../columns.ts';
import { type Command, CommandFailed, EXIT, entryOf, printJson, type Terminal, unknownAction } from '../command.ts';
import { type Options, optionRulesOf, optionsHelp, wrapped } from '../options.ts';
import { plain } from '../plain.ts';
import { flagOf, operationOf } from './operations.ts';
import { checkHeader, type Server, serverOf } from './server.ts';

export interface Verb {
  /** The arguments of the verb: `<id>...`, with optional arguments in brackets. */
  words?: string;
  /** A sentence or two. */
  meaning: string;
  /** The operation whose filters are options of the verb. */
  filtersOf?: string;
  /** The operation whose message options are options of the verb. */
  headersOf?: string;
  /** The verb's own options with their meanings: `--body <text>`, or `--all` without a value. */
  options?: Options;
  /** The verb sends no requests, and so has no common options such as `--server`. */
  isLocal?: true;
  /** A command line that works, without the program's name. */
  example: string;
  run(call: Call): Promise<number>;
}

/** The parsed arguments of a verb. */
export interface Call {
  words: readonly string[];
  /** Filters, by their names in the API. */
  query: URLSearchParams;
  /** Message options, as headers. */
  headers: [string, string][];
  /** The values of one of the verb's own options; empty if the option is absent. `name`: without dashes. */
  values(name: string): readonly string[];
  isJson: boolean;
  /** Created at first use, from the options, the environment and the profiles. */
  readonly server: Server;
  terminal: Terminal;
}

const COMMON_OPTIONS: Options = {
  '--json': 'Print JSON.',
  '--server <address>':
    'Address of the server. Environment: QSTASH_URL. Default: the default profile, or the development server of this machine.',
  '--token <token>':
    'Token of the project. Environment: QSTASH_TOKEN. Default: that of the default profile, or of "waypost dev".',
  '--profile <name>': 'Use the address and token of this profile of "waypost login".',
};

/** Creates the command `name` from its verbs by name. A verb with the name `''` is the only verb: the command itself. */
export function commandOf(name: string, verbs: Readonly<Record<string, Verb>>): Command {
  const names = Object.keys(verbs);
  const resolve = (args: readonly string[]): { verb?: Verb; commandName: string; rest: readonly string[] } => {
    const only = verbs[''];
    if (only !== undefined) return { verb: only, commandName: name, rest: args };
    const [first, ...rest] = args;
    const isWord = first !== undefined && !first.startsWith('-');
    const word = isWord ? first : 'list' in verbs ? 'list' : names[0];
    const verb = entryOf(verbs, word ?? '');
    return { ...(verb && { verb }), commandName: `${name} ${word}`, rest: isWord ? rest : args };
  };
  return {
    ...(!('' in verbs) && {
      verbs: Object.fromEntries(Object.entries(verbs).map(([word, { meaning }]) => [word, meaning])),
    }),
    options(args) {
      const { verb } = resolve(args);
      return verb === undefined ? {} : usagesOf(verb);
    },
    help(args) {
      const isNamed = names.includes(args[0] ?? '') || '' in verbs;
      const { verb, commandName } = resolve(args);
      return isNamed && verb !== undefined ? helpOf(commandName, verb) : overviewOf(name, verbs);
    },
    async run(args, terminal) {
      const { verb, commandName, rest } = resolve(args);
      if (verb === undefined) return unknownAction(name, args[0] ?? '', names);
      return verb.run(callOf(commandName, verb, rest, terminal));
    },
  };
}

/** Prints `value` as JSON, or `text` for people. */
export function show({ isJson, terminal }: Call, value: unknown, text: string): number {
  if (isJson) printJson(terminal, value);
  else terminal.print(`${text}\n`);
  return EXIT.ok;
}

/** The heading and the cells of a column. */
export type Column<Item> = readonly [heading: string, cell: (item: Item) => unknown];

/** Prints `items` as JSON, or as a table for people. */
export function showTable<Item>(
  { isJson, terminal }: Call,
  items: readonly Item[],
  table: readonly Column<Item>[],
): number {
  if (isJson) printJson(terminal, items);
  else {
    const rows = items.map((item) => table.map(([, cell]) => plain(String(cell(item) ?? ''))));
    terminal.print(columns([table.map(([heading]) => heading), ...rows]));
  }
  return EXIT.ok;
}

function callOf(commandName: string, verb: Verb, args: readonly string[], terminal: Terminal): Call {
  const filters = flagsOf(verb.filtersOf && operationOf(verb.filtersOf).query);
  const settings = flagsOf(verb.headersOf && operationOf(verb.headersOf).headers);
  const known = new Map(optionRulesOf(usagesOf(verb)));
  const flagByHeader = new Map([...settings].map(([flag, header]) => [header, flag]));
  for (const header of flagByHeader.keys()) known.set(header, 'needed');
  const { words, options: found, problems } = readArguments(args, known);
  if (problems.length > 0) throw new ConfigError(problems);
  const options = new Map<string, string[]>();
  for (const { name, value = '' } of found) {
    const flag = flagByHeader.get(name) ?? name;
    options.set(flag, [...(options.get(flag) ?? []), value]);
  }
  checkWords(commandName, verb, words);
  const last = (name: string) => options.get(name)?.at(-1);
  let server: Server | undefined;
  const call: Call = {
    words,
    query: new URLSearchParams(),
    headers: [],
    values: (name) => options.get(name) ?? [],
    isJson: options.has('json'),
    get server() {
      server ??= serverOf({ server: last('server'), token: last('token'), profile: last('profile') }, terminal.env);
      return server;
    },
    terminal,
  };
  for (const [flag, values] of options) {
    const [filter, setting] = [filters.get(flag), settings.get(flag)];
    for (const value of values) {
      if (filter !== undefined) call.query.append(filter, filter.endsWith('Date') ? parseTime(flag, value) : value);
      if (setting === undefined) continue;
      checkHeader(`--${flag}`, value);
      call.headers.push([setting, value]);
    }
  }
  return call;
}

/** All options with their meanings, for the help. A verb may override the meaning of a common option. */
function usagesOf({ options, filtersOf, headersOf, isLocal }: Verb): Options {
  const described = [filtersOf && operationOf(filtersOf).query, headersOf && operationOf(headersOf).headers];
  const valued = described.flatMap((rows) =>
    [...flagsOf(rows)].map(([flag, name]) => [`--${flag} <value>`, (rows || undefined)?.[name] ?? ''] as const),
  );
  return { ...options, ...Object.fromEntries(valued), ...(isLocal ? {} : COMMON_OPTIONS), ...options };
}

/** The names in the API, by flag. If several names have the same flag, the first of these names is used. */
function flagsOf(rows: Readonly<Record<string, string>> | '' | undefined): Map<string, string> {
  const flags = new Map<string, string>();
  for (const name of Object.keys(rows || {})) if (!flags.has(flagOf(name))) flags.set(flagOf(name), name);
  return flags;
}

/** Parses a number of milliseconds, or a date, as Unix time in milliseconds. */
function parseTime(flag: string, value: string): string {
  const ms = /^\d+$/.test(value) ? Number(value) : Date.parse(value);
  if (Number.isNaN(ms))
    throw new CommandFailed(
      `--${flag}: must be a time such as 2026-01-31T13:05Z, not ${JSON.stringify(value)}`,
      EXIT.usage,
    );
  return String(ms);
}

function checkWords(commandName: string, { words: usage = '' }: Verb, words: readonly string[]): void {
  const parameters = [...usage.matchAll(/(\[?)<([^>]+)>(\.\.\.)?/g)];
  const missing = parameters.find(([, optional], at) => optional === '' && words[at] === undefined);
  if (missing) throw new CommandFailed(`${commandName}: <${missing[2]}> is missing`, EXIT.usage);
  const extra = words[parameters.length];
  if (extra !== undefined && parameters.at(-1)?.[3] === undefined)
    throw new CommandFailed(
      `${commandName}: unexpected argument ${JSON.stringify(extra)}; see waypost ${commandName} --help`,
      EXIT.usage,
    );
}

function overviewOf(name: string, verbs: Readonly<Record<string, Verb>>): string {
  const entries = Object.entries(verbs);
  const usages = entries.map(
    ([word, verb], at) => `${at === 0 ? 'Usage:' : '      '} waypost ${usageOf(`${name} ${word}`, verb)}`,
  );
  const meanings = entries.flatMap(([word, { meaning }]) => [`  ${word}`, ...wrapped(meaning)]);
  const example = entries.find(([word]) => word === 'list') ?? entries[0];
  return lines([
    ...usages,
    '',
    ...meanings,
    ...(entries.every(([, { isLocal }]) => isLocal) ? [] : optionsHelp(COMMON_OPTIONS)),
    '',
    `Example: waypost ${example?.[1].example}`,
    `"waypost ${name} <verb> --help" lists the options of a verb.`,
  ]);
}

function helpOf(commandName: string, verb: Verb): string {
  return lines([
    `Usage: waypost ${usageOf(commandName, verb)}`,
    '',
    ...wrapped(verb.meaning, ''),
    '',
    ...optionsHelp(usagesOf(verb)),
    ...(Object.keys(usagesOf(verb)).length > 0 ? [''] : []),
    `Example: waypost ${verb.example}`,
  ]);
}

function usageOf(commandName: string, verb: Verb): string {
  const hasOptions = Object.keys(usagesOf(verb)).length > 0;
  return [commandName, verb.words, hasOptions ? '[options]' : undefined].filter((part) => part !== undefined).join(' ');
}

function lines(texts: readonly string[]): string {
  return `${texts.join('\n')}\n`;
}
