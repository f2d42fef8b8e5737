/** Checks that every run reached the end that its program defines, and that every report of it was sent. */
import type { DiaryLine } from './diary.ts';
import { type JournalVerdict, marksIn, type Story } from './journal-checks.ts';
import { programOf } from './programs.ts';
import type { RunBook, TriggeredRun } from './run-book.ts';
import type { DeadRun, LoggedRun, RunView } from './run-view.ts';

export interface RunVerdict {
  acked: number;
  succeeded: number;
  failed: number;
  cancelled: number;
  invoked: number;
  /** Runs whose result shows that they were notified, or that their wait timed out. */
  woken: number;
  /** Acknowledged runs that the server does not know. */
  lost: string[];
  /** Runs that nobody triggered or invoked, or that were started twice. */
  unexpected: string[];
  /** Runs and messages of runs whose logs do not show exactly one start and one end (P2). */
  notEndedOnce: string[];
  /** Runs that did not end as their program defines. */
  endedWrongly: string[];
  /** Runs with a wrong result, or with a value that no recorded execution created. */
  returnedWrongly: string[];
  /** Failed runs without a DLQ entry or a failure callback, and other runs with a DLQ entry or a failure callback. */
  failuresNotTold: string[];
}

interface Evidence {
  book: RunBook;
  view: RunView;
  lines: readonly DiaryLine[];
  journals: JournalVerdict;
}

export function judgeRuns({ book, view, lines, journals }: Evidence): RunVerdict {
  const ended = (state: string) => view.runs.filter(({ states }) => states.at(-1) === state);
  const told = new Set(lines.flatMap((line) => (line.kind === 'told of failure' ? [line.runId] : [])));
  const known = new Set(view.runs.map(({ runId }) => runId));
  const acked = book.runs().filter(({ trigger }) => trigger === 'acked');
  return {
    acked: acked.length,
    succeeded: ended('RUN_SUCCESS').length,
    failed: ended('RUN_FAILED').length,
    cancelled: ended('RUN_CANCELED').length,
    invoked: view.runs.filter(({ invoker }) => invoker !== undefined).length,
    woken: view.runs.filter(({ response }) => response?.includes('woken by')).length,
    lost: acked.filter(({ runId }) => !known.has(runId)).map(({ runId }) => runId),
    unexpected: [...strangers(book, view), ...[...journals.stories.keys()].filter((runId) => !known.has(runId))],
    notEndedOnce: view.runs.flatMap(notEndedOnce),
    ...endings(view, book, journals.stories),
    failuresNotTold: view.runs.flatMap((run) => {
      const entries = view.dead.filter(({ runId }) => runId === run.runId);
      return failureNotTold(run, entries, told.has(run.runId));
    }),
  };
}

function strangers(book: RunBook, { runs }: RunView): string[] {
  const ids = runs.map(({ runId }) => runId);
  return [
    ...ids.filter((id, index) => ids.indexOf(id) < index).map((id) => `${id} started twice`),
    ...runs
      .filter(({ runId, invoker }) => (invoker === undefined) === (book.find(runId) === undefined))
      .map(({ runId, invoker }) => `${runId} invoked by ${invoker ?? 'nobody'}`),
    ...runs.flatMap(({ runId, program, states }) => {
      const most = programOf(program)?.children ?? 0;
      const children = runs.filter(({ invoker }) => invoker === runId).length;
      const isRight = states.at(-1) === 'RUN_SUCCESS' ? children === most : children <= most;
      return isRight ? [] : [`${runId} invoked ${children} runs instead of ${most}`];
    }),
  ];
}

function notEndedOnce({ runId, states, messages }: LoggedRun): string[] {
  const isWhole = (list: string[], first: string) => list.length === 2 && list[0] === first && list[1] !== first;
  return [
    ...(isWhole(states, 'RUN_STARTED') ? [] : [`${runId}: ${states.join(', ')}`]),
    ...[...messages]
      .filter(([, list]) => !isWhole(list, 'CREATED'))
      .map(([messageId, list]) => `${messageId} of ${runId}: ${list.join(', ')}`),
  ];
}

function endings(
  view: RunView,
  book: RunBook,
  stories: ReadonlyMap<string, Story>,
): Pick<RunVerdict, 'endedWrongly' | 'returnedWrongly'> {
  const endedWrongly: string[] = [];
  const returnedWrongly: string[] = [];
  for (const run of view.runs) {
    const triggered = book.find(run.runId);
    const end = run.states.at(-1) ?? 'nothing';
    if (!allowedEnds(run.program, triggered).includes(end)) {
      const asked = triggered && `, trigger ${triggered.trigger}, cancel ${triggered.cancel ?? 'not asked or 404'}`;
      endedWrongly.push(`${run.runId} (${run.program}${asked ?? ''}): ${end}`);
    }
    if (end !== 'RUN_SUCCESS') continue;
    const reason = whyNotReturned(run, triggered, stories.get(run.runId));
    if (reason !== undefined) returnedWrongly.push(`${run.runId} (${run.program}): ${reason}: ${run.response}`);
  }
  return { endedWrongly, returnedWrongly };
}

function allowedEnds(program: string, triggered: TriggeredRun | undefined): string[] {
  if (triggered?.cancel === 'acked' || program === 'oversleeps') return ['RUN_CANCELED'];
  const isToFail = programOf(program)?.expected('').length === 0;
  const end = isToFail ? 'RUN_FAILED' : 'RUN_SUCCESS';
  return triggered?.cancel === 'unknown' ? [end, 'RUN_CANCELED'] : [end];
}

function whyNotReturned(
  run: LoggedRun,
  triggered: TriggeredRun | undefined,
  story: Story | undefined,
): string | undefined {
  const tag = triggered?.tag ?? story?.tag;
  const program = programOf(run.program);
  if (tag === undefined || program === undefined || story === undefined) return 'was not delivered';
  const response = run.response ?? '';
  const withoutMarks = marksIn(response).reduce((text, mark) => text.replace(mark, ''), response);
  if (!program.expected(tag).some((lines) => JSON.stringify(lines) === withoutMarks)) return 'not what it must return';
  // The last step may have been recorded with the end of the run. Then only the log has it.
  const logged = new Set([...run.results.values()].flatMap(marksIn));
  const stray = marksIn(response).find((mark) => !story.marks.has(mark) && !logged.has(mark));
  if (stray !== undefined) return `${stray} was never recorded`;
  const { news, wokenBy } = triggered ?? { news: new Map<string, unknown>(), wokenBy: undefined };
  const heard = /woken by (news for [^"]*)/.exec(response)?.[1];
  if (heard !== undefined && !news.has(heard)) return 'nobody said so';
  return wokenBy === undefined || heard === wokenBy ? undefined : `missed ${wokenBy}`;
}

function failureNotTold({ runId, states }: LoggedRun, entries: readonly DeadRun[], isTold: boolean): string[] {
  const [entry] = entries;
  const isFailed = states.at(-1) === 'RUN_FAILED';
  const isRight = isFailed
    ? isTold && entries.length === 1 && entry?.failureCallback === 'CALLBACK_SUCCESS'
    : !isTold && entries.length === 0;
  const what = `${states.at(-1)}, ${entries.length} DLQ entries, ${entry?.failureCallback ?? 'no callback'}`;
  return isRight ? [] : [`${runId}: ${what}, ${isTold ? 'told' : 'not told'}`];
}
