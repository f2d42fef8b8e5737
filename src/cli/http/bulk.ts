/** Verbs that destroy, or act on many at once: they say how many and where, and ask first. */
import { CommandFailed, EXIT } from '../command.ts';
import { progressOf } from '../progress.ts';
import type { Count } from './pages.ts';
import type { Call } from './verb.ts';

export const YES = { '--yes': 'Do not ask first. Needed where nobody can be asked.' } as const;

export const BULK = {
  '--all': 'Everything, without a filter.',
  '--dry-run': 'Only say how many there are.',
  ...YES,
} as const;

/** Throws `CommandFailed` unless who typed the command, or `--yes`, agrees to `what`. */
export async function agreeOn({ terminal, server, values }: Call, what: string): Promise<void> {
  if (values('yes').length > 0) return;
  if (terminal.ask === undefined) {
    throw new CommandFailed(
      `this would ${what} at ${server.title}: nobody can be asked here, so --yes is needed`,
      EXIT.usage,
    );
  }
  const answer = await terminal.ask(`${what.charAt(0).toUpperCase()}${what.slice(1)} at ${server.title}? [y/N] `);
  if (!/^y(es)?$/i.test(answer.trim())) throw new CommandFailed('nothing is done');
}

/** Parameters that choose nothing by themselves. */
const NO_FILTERS: ReadonlySet<string> = new Set(['count', 'cursor', 'workflowUrlExactMatch']);

interface Bulk {
  /** The filter that ids are given as; words are ids. */
  ids: string;
  verb: string;
  /** One of them, and several. */
  noun: readonly [string, string];
  /** How many match what is asked. */
  count: Count;
  /** Does it; resolves to how many there were. */
  act: Count;
}

/** Counts, asks, acts. `done` says it in the past. */
export async function actOnMany(
  call: Call,
  { ids, verb, noun, count: countAll, act }: Bulk,
  done: string,
): Promise<number> {
  const { words, query, values, terminal, isJson } = call;
  const [, many] = noun;
  const counted = (count: number) => `${count} ${noun[count === 1 ? 0 : 1]}`;
  const isAll = values('all').length > 0;
  const isFiltered = [...query.keys()].some((name) => !NO_FILTERS.has(name));
  if (words.length > 0 && query.size > 0)
    throw new CommandFailed('ids and filters do not go together: ids alone would count', EXIT.usage);
  const isChosen = words.length > 0 || isFiltered;
  if (!isChosen && !isAll)
    throw new CommandFailed(`which ${many}? Name their ids, filters, or --all for every one`, EXIT.usage);
  if (isChosen && isAll) throw new CommandFailed('--all: goes with no ids and no filters', EXIT.usage);
  for (const word of words) query.append(ids, word);
  const say = (result: number, isDry: boolean): void => {
    const text = isDry ? `Would ${verb} ${counted(result)} at ${call.server.title}.` : `${done} ${counted(result)}.`;
    terminal.print(isJson ? `${JSON.stringify({ count: result, isDryRun: isDry })}\n` : `${text}\n`);
  };
  const isDry = values('dry-run').length > 0;
  const isAsked = values('yes').length === 0;
  const progress = progressOf(terminal);
  let isLong = false;
  const counting = (done: number): void => {
    if (isLong) progress.tell(done, undefined, `${many} counted`);
    isLong = true; // from the second page on
  };
  const expected = isDry || isAsked ? await countAll(call, counting).finally(() => progress.end()) : undefined;
  if (isDry) {
    say(expected ?? 0, true);
    return EXIT.ok;
  }
  if (expected === 0) throw new CommandFailed(`there are no such ${many}`, EXIT.notFound);
  if (isAsked) await agreeOn(call, `${verb} ${counted(expected ?? 0)}`);
  const result = await act(call, (done) => progress.tell(done, expected)).finally(() => progress.end());
  if (result === 0) throw new CommandFailed(`there are no such ${many}`, EXIT.notFound);
  say(result, false);
  return EXIT.ok;
}
