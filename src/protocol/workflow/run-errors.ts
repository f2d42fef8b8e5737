/**
 * Changes the status of errors for requests of a running workflow. A library reads any 400 as the end of its run, and
 * stops silently. After a 400 for another reason, the run would wait forever (contract W 4.7).
 */

import { ApiError } from '../errors.ts';
import { trimBlanks } from '../headers.ts';
import { hasConfigPrefix } from '../options/config-names.ts';
import type { OptionsInput } from '../options/config-scopes.ts';

/** The same error with 422 instead of 400, unless the run has really ended. */
export function toRunError(error: unknown): unknown {
  if (!(error instanceof ApiError) || error.status !== 400 || error.code === 'run_over') return error;
  return new ApiError('unprocessable', error.message);
}

/**
 * `toRunError` for a publish of a run, also with 412 instead of 413. A library treats only 412 as final; after a 413
 * it executes the step again with each retry.
 */
export function toRunPublishError(error: unknown): unknown {
  if (!(error instanceof ApiError) || error.code !== 'body_too_large') return toRunError(error);
  return new ApiError('quota_exceeded', error.message);
}

type PublishHeaders = Pick<OptionsInput, 'rawHeaders' | 'queryConfig'>;
/** Options that mark a message, with the marking value. */
type Marks = ReadonlyMap<string, string>;

const PREFIX_LENGTH = 'upstash-'.length;
const RUN_MARKS: Marks = new Map([
  ['workflow-init', 'false'],
  ['workflow-invoke', 'true'],
]);
const SDK_MARKS: Marks = new Map([['workflow-trigger-by-sdk', 'true']]);
const MARK_LENGTHS: ReadonlySet<number> = new Set(
  [...RUN_MARKS.keys(), ...SDK_MARKS.keys()].map((mark) => PREFIX_LENGTH + mark.length),
);

/** Whether a running workflow sends the message: a step, a call or an invocation. */
export function isSentByRun(headers: PublishHeaders): boolean {
  return isMarked(headers, RUN_MARKS);
}

/**
 * Whether the message is the second phase of a trigger, in which the library that serves the URL identifies itself
 * (contract W 5.3).
 */
export function isSentBySdk(headers: PublishHeaders): boolean {
  return isMarked(headers, SDK_MARKS);
}

function isMarked({ rawHeaders, queryConfig }: PublishHeaders, marks: Marks): boolean {
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    if (isMark(rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '', marks)) return true;
  }
  return queryConfig.some(([name, value]) => isMark(name, value, marks));
}

function isMark(name: string, value: string, marks: Marks): boolean {
  // A quick first check, since this runs for each header of each message.
  if (!MARK_LENGTHS.has(name.length) || !hasConfigPrefix(name)) return false;
  const expected = marks.get(name.slice(PREFIX_LENGTH).toLowerCase());
  return expected !== undefined && trimBlanks(value).toLowerCase() === expected;
}
