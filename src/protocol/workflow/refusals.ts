/**
 * How is refused what a running workflow asks for? A library takes any 400 for the news that its run is over, and stops
 * quietly: said of anything else, the run would wait for ever (workflow.md 4.7).
 */

import { hasConfigPrefix, readConfigName } from '../config-names.ts';
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

function saysSo(name: string, value: string): boolean {
  if (!hasConfigPrefix(name)) return false;
  const { path, option } = readConfigName(name);
  if (path.length > 0) return false;
  const word = trimBlanks(value).toLowerCase();
  return (option === 'workflow-init' && word === 'false') || (option === 'workflow-invoke' && word === 'true');
}
