/**
 * How is refused what a running workflow asks for? A library takes any 400 for the news that its run is over, and stops
 * quietly: said of anything else, the run would wait for ever (workflow.md 4.7).
 */

import { hasConfigPrefix } from '../config-names.ts';
import type { OptionsInput } from '../config-scopes.ts';
import { ApiError } from '../errors.ts';
import { trimBlanks } from '../headers.ts';

/** The same refusal, with 422 in place of 400, unless the run is over indeed. */
export function refusedInRun(error: unknown): unknown {
  if (!(error instanceof ApiError) || error.status !== 400 || error.code === 'run_over') return error;
  return new ApiError('unprocessable', error.message);
}

/** Whether a message is one that a running workflow sends: a step, a call, an invocation. */
export function isSentByRun({ rawHeaders, queryConfig }: Pick<OptionsInput, 'rawHeaders' | 'queryConfig'>): boolean {
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    if (saysSo(rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '')) return true;
  }
  return queryConfig.some(([name, value]) => saysSo(name, value));
}

const PREFIX_LENGTH = 'upstash-'.length;

/** What marks a message of a run: options of its own scope, and their values. */
const MARKS: ReadonlyMap<string, string> = new Map([
  ['workflow-init', 'false'],
  ['workflow-invoke', 'true'],
]);
const MARK_LENGTHS: ReadonlySet<number> = new Set([...MARKS.keys()].map((mark) => PREFIX_LENGTH + mark.length));

function saysSo(name: string, value: string): boolean {
  // Asked of each header of each message, so most are to end here.
  if (!MARK_LENGTHS.has(name.length) || !hasConfigPrefix(name)) return false;
  const mark = name.slice(PREFIX_LENGTH).toLowerCase();
  const wanted = MARKS.get(mark);
  return wanted !== undefined && trimBlanks(value).toLowerCase() === wanted;
}
