/** Asks the user to confirm verbs that delete or change many items, and shows the number of items and the server. */
import { CommandFailed, EXIT } from '../command.ts';
import { type Progress, progressOf } from '../progress.ts';
import type { Count } from './pages.ts';
import type { Call } from './verb.ts';

export const YES_OPTION = { '--yes': 'Skip the confirmation. Required without an interactive terminal.' } as const;

export const BULK_OPTIONS = {
  '--all': 'All of them, without a filter.',
  '--dry-run': 'Only print how many match.',
  ...YES_OPTION,
} as const;

/** Throws `CommandFailed` unless the user or `--yes` confirms the action. */
export async function confirm({ terminal, server, values }: Call, action: string): Promise<void> {
  if (values('yes').length > 0) return;
  if (terminal.ask === undefined) {
    throw new CommandFailed(
      `this would ${action} at ${server.title}: without an interactive terminal, --yes is required`,
      EXIT.usage,
    );
  }
  const answer = await terminal.ask(`${action.charAt(0).toUpperCase()}${action.slice(1)} at ${server.title}? [y/N] `);
  if (!/^y(es)?$/i.test(answer.trim())) throw new CommandFailed('nothing was done');
}

/** Parameters that select nothing by themselves. */
const NO_FILTERS: ReadonlySet<string> = new Set(['count', 'cursor', 'workflowUrlExactMatch']);

interface Bulk {
  /** The query parameter for ids. */
  ids: string;
  verb: string;
  /** Singular and plural. */
  noun: readonly [string, string];
  /** Counts the items that match. */
  count: Count;
  /** Performs the action; resolves to the number of items. */
  act: Count;
}

/** Counts the items, asks for confirmation, and acts. `done`: the past tense of the verb. */
export async function actOnMany(call: Call, bulk: Bulk, done: string): Promise<number> {
  const { terminal, server, values, isJson } = call;
  const { verb, noun, act } = bulk;
  select(call, bulk);
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
    await confirm(call, `${verb} ${counted(expected)}`);
  }
  const count = await act(call, (acted) => progress.report(acted, expected)).finally(() => progress.end());
  refuseNone(count, noun);
  return report(count, false, `${done} ${counted(count)}.`);
}

/** Adds the ids to the query. Throws `CommandFailed` unless the call has exactly one of ids, filters and `--all`. */
function select({ words, query, values }: Call, { ids, noun: [, many] }: Bulk): void {
  const isAll = values('all').length > 0;
  const isFiltered = [...query.keys()].some((name) => !NO_FILTERS.has(name));
  const isSelected = words.length > 0 || isFiltered;
  if (words.length > 0 && query.size > 0) throw new CommandFailed('ids and filters cannot be combined', EXIT.usage);
  if (!isSelected && !isAll) throw new CommandFailed(`which ${many}? Give ids, filters, or --all`, EXIT.usage);
  if (isSelected && isAll) throw new CommandFailed('--all: cannot be combined with ids or filters', EXIT.usage);
  for (const word of words) query.append(ids, word);
}

/** Shows progress from the second page on. */
function countAll(call: Call, { count, noun: [, many] }: Bulk, progress: Progress): Promise<number> {
  let isLong = false;
  const onCount = (counted: number): void => {
    if (isLong) progress.report(counted, undefined, `${many} counted`);
    isLong = true;
  };
  return count(call, onCount).finally(() => progress.end());
}

function refuseNone(count: number, [, many]: Bulk['noun']): void {
  if (count === 0) throw new CommandFailed(`no ${many} match`, EXIT.notFound);
}
