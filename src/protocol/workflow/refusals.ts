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

type Sent = Pick<OptionsInput, 'rawHeaders' | 'queryConfig'>;

/** Whether a message is one that a running workflow sends: a step, a call, an invocation. */
export function isSentByRun(sent: Sent): boolean {
  return isSaid(
    sent,
    (option, word) =>
      (option === 'workflow-init' && word === 'false') || (option === 'workflow-invoke' && word === 'true'),
  );
}

/** Whether it is the second phase of a trigger, by which the library behind the URL makes itself known (workflow.md 5.3). */
export function isSentBySdk(sent: Sent): boolean {
  return isSaid(sent, (option, word) => option === 'workflow-trigger-by-sdk' && word === 'true');
}

/** Whether a header or a parameter has an option for which `says` is true of its value in small letters. */
function isSaid({ rawHeaders, queryConfig }: Sent, says: (option: string, word: string) => boolean): boolean {
  const isIn = (name: string, value: string): boolean => {
    if (!hasConfigPrefix(name)) return false;
    const { path, option } = readConfigName(name);
    return path.length === 0 && says(option, trimBlanks(value).toLowerCase());
  };
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    if (isIn(rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '')) return true;
  }
  return queryConfig.some(([name, value]) => isIn(name, value));
}
