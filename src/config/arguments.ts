/** Parses the words and options of a command line, in any order; after `--` every argument is a word. */
import { parseArgs } from 'node:util';
import { nearest } from './nearest.ts';

/**
 * Whether an option needs a value, takes no value, or takes a value only after `=`. The keys are names without dashes.
 */
export type OptionRules = ReadonlyMap<string, 'needed' | 'none' | 'attached'>;

interface OptionValue {
  name: string;
  /** The option as it was typed, with its dashes. */
  flag: string;
  value: string | undefined;
}

export interface Arguments {
  words: string[];
  options: OptionValue[];
  /** One line per mistake. */
  problems: string[];
}

/**
 * Parses `args` with the `known` options. Accepts the name of an API field as an option: `--queueName` means
 * `--queue-name`.
 */
export function readArguments(args: readonly string[], known: OptionRules): Arguments {
  const types = [...known].flatMap(([name, value]) => {
    const type: 'string' | 'boolean' = value === 'needed' ? 'string' : 'boolean';
    const option = name.length === 1 ? { type, short: name } : { type };
    const inCamelCase = name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
    return [[name, option] as const, [inCamelCase, option] as const];
  });
  const config = { options: Object.fromEntries(types), strict: false, allowPositionals: true, tokens: true } as const;
  const { tokens } = parseArgs({ args: [...args], ...config });
  const words: string[] = [];
  const options: OptionValue[] = [];
  const problems = new Set<string>();
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value);
    if (token.kind !== 'option') continue;
    const { rawName, value, index } = token;
    const name = known.has(token.name) ? token.name : inKebabCase(token.name);
    const rule = known.get(name);
    // Without this, `-f=path` would name the file `=path`.
    const text = token.inlineValue && !rawName.startsWith('--') ? value?.replace(/^=/, '') : value;
    if (rule === undefined) problems.add(unknown(args[index] ?? rawName, known));
    else if (rule === 'needed' && text === undefined) problems.add(`${rawName}: needs a value`);
    else if (rule === 'none' && text !== undefined) problems.add(`${rawName}: takes no value`);
    else options.push({ name, flag: rawName, value: text });
  }
  return { words, options, problems: [...problems] };
}

function unknown(arg: string, known: OptionRules): string {
  const [flag = ''] = arg.split('=', 1);
  const meant = nearest(inKebabCase(flag.replace(/^--?/, '')), known.keys());
  return `${flag}: there is no such option${meant === undefined ? '' : `; did you mean --${meant}?`}`;
}

function inKebabCase(name: string): string {
  return name.replace(/([a-z])([A-Z])/g, '$1-$2').toLowerCase();
}
