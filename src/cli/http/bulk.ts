/** Verbs that destroy, or act on many at once: they say how many and where, and ask first. */
import { CommandFailed, EXIT } from '../command.ts';
import { type Progress, progressOf } from '../progress.ts';
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
export async function actOnMany(call: Call, bulk: Bulk, done: string): Promise<number> {
  const { terminal, server, values, isJson } = call;
  const { verb, noun, act } = bulk;
  choose(call, bulk);
  const counted = (count: number) => `${count} ${noun[count === 1 ? 0 : 1]}`;
  const report = (count: number, isDryRun: boolean, text: string): number => {
    terminal.print(isJson ? `${JSON.stringify({ count, isDryRun })}\n` : `${text}\n`);
    return EXIT.ok;
  };
  const progress = progressOf(terminal);
  const isDryRun = values('dry-run').length > 0;
  let expected: number | undefined;
  if (isDryRun || values('yes').length === 0) {
    expected = await countAll(call, bulk, progress);
    if (isDryRun) return report(expected, true, `Would ${verb} ${counted(expected)} at ${server.title}.`);
    refuseNone(expected, noun);
    await agreeOn(call, `${verb} ${counted(expected)}`);
  }
  const count = await act(call, (acted) => progress.tell(acted, expected)).finally(() => progress.end());
  refuseNone(count, noun);
  return report(count, false, `${done} ${counted(count)}.`);
}

/** Adds the ids to the query. Throws `CommandFailed` unless the call names ids, filters or `--all`, and only one of these. */
function choose({ words, query, values }: Call, { ids, noun: [, many] }: Bulk): void {
  const isAll = values('all').length > 0;
  const isFiltered = [...query.keys()].some((name) => !NO_FILTERS.has(name));
  const isChosen = words.length > 0 || isFiltered;
  if (words.length > 0 && query.size > 0)
    throw new CommandFailed('ids and filters do not go together: ids alone would count', EXIT.usage);
  if (!isChosen && !isAll)
    throw new CommandFailed(`which ${many}? Name their ids, filters, or --all for every one`, EXIT.usage);
  if (isChosen && isAll) throw new CommandFailed('--all: goes with no ids and no filters', EXIT.usage);
  for (const word of words) query.append(ids, word);
}

/** Shows progress from the second page on. */
function countAll(call: Call, { count, noun: [, many] }: Bulk, progress: Progress): Promise<number> {
  let isLong = false;
  const tell = (counted: number): void => {
    if (isLong) progress.tell(counted, undefined, `${many} counted`);
    isLong = true;
  };
  return count(call, tell).finally(() => progress.end());
}

function refuseNone(count: number, [, many]: Bulk['noun']): void {
  if (count === 0) throw new CommandFailed(`there are no such ${many}`, EXIT.notFound);
}
