/**
 * What follows from the end of a run: the results of the invocations that wait for it. Whoever ends a run (its function
 * that returned, a cancel, a message that failed for good) asks here and saves the answer in one transaction.
 */
import type { EndState, Run } from '../../workflow/model.ts';
import { invokeResult } from '../../workflow/results.ts';
import type { FollowUp, Message, Millis, RunEnding } from '../model.ts';
import type { RunStore } from '../run-stores.ts';
import { resultOf } from './record-results.ts';

export interface RunEnd {
  state: EndState;
  atMs: Millis;
  /** What the run returned. */
  response?: Uint8Array;
}

/** The ending of `run` as it is now, and what follows from it. */
export async function endingOf(
  store: Pick<RunStore, 'findRecords'>,
  run: Run,
  end: RunEnd,
): Promise<{ ending: RunEnding; follows: FollowUp[] }> {
  const ending: RunEnding = { runKey: run.key, runVersion: run.version, ...end };
  if (run.invokers.length === 0) return { ending, follows: [] };
  const records = await store.findRecords(run.projectId, run.invokers);
  return { ending, follows: records.flatMap((record) => resultFor(record, end)) };
}

/** The message that tells the parent, made of what the invocation was registered with. */
function resultFor(record: Message, { state, atMs, response }: RunEnd): FollowUp[] {
  const { invoke } = record.settings;
  return invoke ? [resultOf(record, invoke.result, invokeResult(record.body, state, response), atMs)] : [];
}
