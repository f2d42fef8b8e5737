/** How a run that is over has ended, in one sentence and in fields. Pure. */
import type { RunLog } from '../../workflow/run-log.ts';
import type { RunExplanation } from './explain.ts';

/** `log`: the log of a run that is over. */
export function explainEnded({ run, failure }: RunLog): RunExplanation {
  const { id: runId, createdAtMs, state, completedAtMs = createdAtMs, dlqId, config } = run;
  const about = { runId, createdAtMs, others: 0, atMs: completedAtMs };
  const at = new Date(completedAtMs).toISOString();
  if (state === 'RUN_SUCCESS') return { ...about, reason: 'succeeded', sentence: `Returned at ${at}.` };
  if (state === 'RUN_CANCELED') return { ...about, reason: 'cancelled', sentence: `Was cancelled at ${at}.` };
  const why = failure?.error ?? 'it is not known why';
  const { successor } = config;
  const rest = successor
    ? `Run ${successor.id} has taken its place.`
    : dlqId === undefined
      ? 'It is no longer in the DLQ.'
      : `It is in the DLQ as ${dlqId}.`;
  const failed: RunExplanation = { ...about, reason: 'failed', sentence: `Failed at ${at}: ${why}. ${rest}` };
  if (dlqId !== undefined) failed.dlqId = dlqId;
  return failed;
}
