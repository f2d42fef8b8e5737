/** The options of a command: one definition for parsing, help and completion. */
import type { OptionRules } from '../config/arguments.ts';

/** The meanings of options by usage: `--all`, `--body <text>`, or `-f, --file <path>` with two names. */
export type Options = Readonly<Record<string, string>>;

export interface OptionName {
  /** Without dashes. */
  name: string;
  hasValue: boolean;
  meaning: string;
}

/** Every name of every option. */
export function namesOf(options: Options): OptionName[] {
  return Object.entries(options).flatMap(([usage, meaning]) =>
    [...usage.matchAll(/(?:^|, )--?([\w-]+)/g)].map(([, name = '']) => ({
      name,
      hasValue: usage.includes('<'),
      meaning,
    })),
  );
}

export function optionRulesOf(options: Options): OptionRules {
  return new Map(namesOf(options).map(({ name, hasValue }) => [name, hasValue ? 'needed' : 'none']));
}

/** The lines of the help that describe `options`. */
export function optionsHelp(options: Options): string[] {
  return Object.entries(options).flatMap(([usage, meaning]) => [`  ${usage}`, ...wrapped(meaning)]);
}

/** Wraps `text` into indented lines of at most 120 characters. */
export function wrapped(text: string, indent = '      '): string[] {
  const found: string[] = [];
  for (const word of text.split(/\s+/)) {
    const last = found.at(-1);
    if (last !== undefined && last.length + word.length < 120) found[found.length - 1] = `${last} ${word}`;
    else found.push(`${indent}${word}`);
  }
  return found;
}
