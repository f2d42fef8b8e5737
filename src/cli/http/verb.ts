/** What is a verb that asks a server, and how do several of them make one command? */
import { readArguments } from '../../config/arguments.ts';
import { ConfigError } from '../../config/parse.ts';
import { columns } from '../columns.ts';
import { type Command, CommandFailed, EXIT, entryOf, printJson, type Terminal, unknownAction } from '../command.ts';
import { knownOf, type Options, optionsHelp, wrapped } from '../options.ts';
import { plain } from '../plain.ts';
import { flagOf, operationOf } from './operations.ts';
import { checkHeader, type Server, serverOf } from './server.ts';

export interface Verb {
  /** The words that follow it: `<id>...`, in brackets what may be left out. */
  words?: string;
  /** A sentence or two. */
  meaning: string;
  /** The operation whose filters are options of the verb. */
  filtersOf?: string;
  /** The operation whose message options are options of the verb. */
  headersOf?: string;
  /** Its own options with what they mean: `--body <text>`, or `--all` without a value. */
  options?: Options;
  /** It asks no server: it has only its own options. */
  isLocal?: true;
  /** A command line that works, without the program's name. */
  example: string;
  run(call: Call): Promise<number>;
}

/** A verb as it is given. */
export interface Call {
  words: readonly string[];
  /** The filters that are given, by their names in the interface. */
  query: URLSearchParams;
  /** The message options that are given, as headers. */
  headers: [string, string][];
  /** The values of an own option, by its name without dashes; empty when it is not given. */
  values(name: string): readonly string[];
  isJson: boolean;
  /** Found when it is first asked for. */
  readonly server: Server;
  terminal: Terminal;
}

const OF_ALL: Options = {
  '--json': 'Print JSON.',
  '--server <address>':
    'Address of the server. Environment: QSTASH_URL. Without both the default profile, or the development server of this machine.',
  '--token <token>':
    'Token of the project. Environment: QSTASH_TOKEN. Without both that of the default profile, or the one of "waypost dev".',
  '--profile <name>': 'Take address and token from this profile, which "waypost login" has made.',
};

/** The command `name`. `verbs`: by their words; with `''` alone the command is the verb. */
export function commandOf(name: string, verbs: Readonly<Record<string, Verb>>): Command {
  const names = Object.keys(verbs);
  const found = (args: readonly string[]): { verb?: Verb; named: string; rest: readonly string[] } => {
    const own = verbs[''];
    if (own !== undefined) return { verb: own, named: name, rest: args };
    const [first, ...rest] = args;
    const isWord = first !== undefined && !first.startsWith('-');
    const word = isWord ? first : 'list' in verbs ? 'list' : names[0];
    const verb = entryOf(verbs, word ?? '');
    return { ...(verb && { verb }), named: `${name} ${word}`, rest: isWord ? rest : args };
  };
  return {
    ...(!('' in verbs) && {
      verbs: Object.fromEntries(Object.entries(verbs).map(([word, { meaning }]) => [word, meaning])),
    }),
    options(args) {
      const { verb } = found(args);
      return verb === undefined ? {} : usagesOf(verb);
    },
    help(args) {
      const isNamed = names.includes(args[0] ?? '') || '' in verbs;
      const { verb, named } = found(args);
      return isNamed && verb !== undefined ? helpOf(named, verb) : overviewOf(name, verbs);
    },
    async run(args, terminal) {
      const { verb, named, rest } = found(args);
      if (verb === undefined) return unknownAction(name, args[0] ?? '', names);
      return verb.run(callOf(named, verb, rest, terminal));
    },
  };
}

/** Prints `value` as JSON, or `text` for people. */
export function show({ isJson, terminal }: Call, value: unknown, text: string): number {
  if (isJson) printJson(terminal, value);
  else terminal.print(`${text}\n`);
  return EXIT.ok;
}

/** A heading and what stands below it. */
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

function callOf(named: string, verb: Verb, args: readonly string[], terminal: Terminal): Call {
  const filters = flagsOf(verb.filtersOf && operationOf(verb.filtersOf).query);
  const settings = flagsOf(verb.headersOf && operationOf(verb.headersOf).headers);
  const known = new Map(knownOf(usagesOf(verb)));
  const flagByHeader = new Map([...settings].map(([flag, header]) => [header, flag]));
  for (const header of flagByHeader.keys()) known.set(header, 'needed');
  const { words, options: given, problems } = readArguments(args, known);
  if (problems.length > 0) throw new ConfigError(problems);
  const options = new Map<string, string[]>();
  for (const { name, value = '' } of given) {
    const flag = flagByHeader.get(name) ?? name;
    options.set(flag, [...(options.get(flag) ?? []), value]);
  }
  checkWords(named, verb, words);
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
      if (filter !== undefined) call.query.append(filter, filter.endsWith('Date') ? timeIn(flag, value) : value);
      if (setting === undefined) continue;
      checkHeader(`--${flag}`, value);
      call.headers.push([setting, value]);
    }
  }
  return call;
}

/** Each option with what it means, as the help has them. What a verb says of an option of all counts. */
function usagesOf({ options, filtersOf, headersOf, isLocal }: Verb): Options {
  const taken = [filtersOf && operationOf(filtersOf).query, headersOf && operationOf(headersOf).headers];
  const valued = taken.flatMap((rows) =>
    [...flagsOf(rows)].map(([flag, name]) => [`--${flag} <value>`, (rows || undefined)?.[name] ?? ''] as const),
  );
  return { ...options, ...Object.fromEntries(valued), ...(isLocal ? {} : OF_ALL), ...options };
}

/** Names in the interface by flag. Of several spellings the first counts. */
function flagsOf(rows: Readonly<Record<string, string>> | '' | undefined): Map<string, string> {
  const flags = new Map<string, string>();
  for (const name of Object.keys(rows || {})) if (!flags.has(flagOf(name))) flags.set(flagOf(name), name);
  return flags;
}

/** Milliseconds, from a number of them or from a time as people write it. */
function timeIn(flag: string, value: string): string {
  const ms = /^\d+$/.test(value) ? Number(value) : Date.parse(value);
  if (Number.isNaN(ms))
    throw new CommandFailed(
      `--${flag}: a time such as 2026-01-31T13:05Z is needed, not ${JSON.stringify(value)}`,
      EXIT.usage,
    );
  return String(ms);
}

function checkWords(named: string, { words: usage = '' }: Verb, words: readonly string[]): void {
  const places = [...usage.matchAll(/(\[?)<([^>]+)>(\.\.\.)?/g)];
  const missing = places.find(([, optional], at) => optional === '' && words[at] === undefined);
  if (missing) throw new CommandFailed(`${named}: <${missing[2]}> is missing`, EXIT.usage);
  const extra = words[places.length];
  if (extra !== undefined && places.at(-1)?.[3] === undefined)
    throw new CommandFailed(`${named}: what is ${JSON.stringify(extra)}? See waypost ${named} --help`, EXIT.usage);
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
    ...(entries.every(([, { isLocal }]) => isLocal) ? [] : optionsHelp(OF_ALL)),
    '',
    `Example: waypost ${example?.[1].example}`,
    `"waypost ${name} <verb> --help" names the options of each.`,
  ]);
}

function helpOf(named: string, verb: Verb): string {
  return lines([
    `Usage: waypost ${usageOf(named, verb)}`,
    '',
    ...wrapped(verb.meaning, ''),
    '',
    ...optionsHelp(usagesOf(verb)),
    ...(Object.keys(usagesOf(verb)).length > 0 ? [''] : []),
    `Example: waypost ${verb.example}`,
  ]);
}

function usageOf(named: string, verb: Verb): string {
  const hasOptions = Object.keys(usagesOf(verb)).length > 0;
  return [named, verb.words, hasOptions ? '[options]' : undefined].filter((part) => part !== undefined).join(' ');
}

function lines(texts: readonly string[]): string {
  return `${texts.join('\n')}\n`;
}
