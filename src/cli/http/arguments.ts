/** Reads the words and options of a verb. Options may stand anywhere; after `--` everything is a word. */
import { nearest } from '../../config/nearest.ts';
import { ConfigError } from '../../config/parse.ts';
import { flagOf } from './operations.ts';

/** Whether the option takes a value, by its name without dashes. */
export type Known = ReadonlyMap<string, { hasValue: boolean }>;

export interface Arguments {
  words: string[];
  /** Each value of each option that is given; `''` for one that takes none. */
  options: Map<string, string[]>;
}

/** Names may be written as in the interface too: `--queueName`. Throws `ConfigError` with a line for each mistake. */
export function readArguments(args: readonly string[], known: Known): Arguments {
  const words: string[] = [];
  const options = new Map<string, string[]>();
  const problems: string[] = [];
  for (let at = 0; at < args.length; at += 1) {
    const arg = args[at] ?? '';
    if (arg === '--') {
      words.push(...args.slice(at + 1));
      break;
    }
    const [, dashes, given = '', , attached] = /^(--?)([^=]+)(=(.*))?$/s.exec(arg) ?? [];
    if (dashes === undefined) {
      words.push(arg);
      continue;
    }
    const name = dashes === '-' ? given : flagOf(given);
    const option = known.get(name);
    if (option === undefined) {
      const meant = nearest(name, [...known.keys()]);
      const hint = meant === undefined ? '' : `; did you mean --${meant}?`;
      problems.push(`${dashes}${given}: there is no such option${hint}`);
      continue;
    }
    let value = attached;
    if (option.hasValue && value === undefined) {
      at += 1;
      value = args[at];
    }
    if (option.hasValue === (value === undefined)) {
      problems.push(`${dashes}${given}: ${option.hasValue ? 'needs a value' : 'takes no value'}`);
    }
    options.set(name, [...(options.get(name) ?? []), value ?? '']);
  }
  if (problems.length > 0) throw new ConfigError(problems);
  return { words, options };
}
