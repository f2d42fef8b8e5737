/** Formats the result of a run, or the cause of its failure. */
import { excerpt, firstLines, plain } from '../plain.ts';
import type { RunView } from './view.ts';

const RESPONSE_LINES_MAX = 4;

/** The lines about the end of a run, above the timeline of its steps. An active run has no such lines. */
export function resultLinesOf({ workflowState, workflowRunResponse, steps }: RunView): string[] {
  if (workflowState === 'RUN_SUCCESS' && workflowRunResponse !== undefined) {
    return [`returned ${excerpt(workflowRunResponse)}`];
  }
  if (workflowState !== 'RUN_FAILED') return [];
  const failed = steps.flatMap((group) => group.steps).findLast(({ state }) => state === 'STEP_FAILED');
  const last = failed?.errors?.at(-1);
  if (last === undefined) return [];
  const { message, rest } = responseOf(last.body ?? '');
  const reason = [last.error, message].flatMap((text) => (text ? [plain(text)] : []));
  return [`failed: ${reason.join(', ')}`, ...firstLines(rest, RESPONSE_LINES_MAX).map((line) => `| ${line}`)];
}

/**
 * Parses the response of a failed step. The workflow library responds to an error with JSON; the body of any other
 * response is returned as text.
 */
function responseOf(body: string): { message?: string; rest: string } {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    return { rest: body }; // not JSON, or truncated JSON
  }
  const { error, message, stack } = (typeof parsed === 'object' && parsed !== null ? parsed : {}) as Record<
    string,
    unknown
  >;
  if (typeof message !== 'string') return { rest: body };
  const text = typeof error === 'string' ? `${error}: ${message}` : message;
  return { message: text, rest: typeof stack === 'string' ? stack : '' };
}
