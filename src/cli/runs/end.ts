/** Shows what a run returned, or why it failed. */
import { excerpt, firstLines, plain } from '../plain.ts';
import type { RunView } from './view.ts';

const LINES_OF_ANSWER_MAX = 4;

/** Lines for the head of the run's timeline; none for an active run. */
export function endOf({ workflowState, workflowRunResponse, steps }: RunView): string[] {
  if (workflowState === 'RUN_SUCCESS' && workflowRunResponse !== undefined) {
    return [`returned ${excerpt(workflowRunResponse)}`];
  }
  if (workflowState !== 'RUN_FAILED') return [];
  const failed = steps.flatMap((group) => group.steps).findLast(({ state }) => state === 'STEP_FAILED');
  const last = failed?.errors?.at(-1);
  if (last === undefined) return [];
  const { message, rest } = answerOf(last.body ?? '');
  const reason = [last.error, message].flatMap((text) => (text ? [plain(text)] : []));
  return [`failed: ${reason.join(', ')}`, ...firstLines(rest, LINES_OF_ANSWER_MAX).map((line) => `| ${line}`)];
}

/** The library answers an error as JSON with a stack; other servers answer anything. */
function answerOf(body: string): { message?: string; rest: string } {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    return { rest: body }; // also JSON that was cut
  }
  const { error, message, stack } = (typeof parsed === 'object' && parsed !== null ? parsed : {}) as Record<
    string,
    unknown
  >;
  if (typeof message !== 'string') return { rest: body };
  const named = typeof error === 'string' ? `${error}: ${message}` : message;
  return { message: named, rest: typeof stack === 'string' ? stack : '' };
}
