/** Makes the end of a run with the results of waiting invocations, and cancels the remaining messages of ended runs. */
import type { Store } from '../../../store/store.ts';
import type { EndState, Run } from '../../../workflow/model.ts';
import { invokeResult } from '../../../workflow/results.ts';
import type { EngineDeps } from '../../deps.ts';
import { DueLoop } from '../../loops/due-loop.ts';
import type { FollowUp, Message, Millis, RunEnding } from '../../model.ts';
import { resultOf } from '../entries.ts';

export interface RunEnd {
  state: EndState;
  atMs: Millis;
  /** The result of the run. */
  response?: Uint8Array;
}

/** The end of a run with its follow-up messages, not yet saved. */
export interface EndingDraft {
  ending: RunEnding;
  follows: FollowUp[];
}

/** The ending of `run` in its current version, with its follow-up messages. */
export async function draftEnding(
  store: { runs: Pick<Store['runs'], 'findRecords'> },
  run: Run,
  end: RunEnd,
): Promise<EndingDraft> {
  const ending: RunEnding = { projectId: run.projectId, runKey: run.key, runVersion: run.version, ...end };
  if (run.invokers.length === 0) return { ending, follows: [] };
  const records = await store.runs.findRecords({ projectId: run.projectId, keys: run.invokers });
  return { ending, follows: records.flatMap((record) => resultsFor(record, end)) };
}

/** The message with the result for the parent, made from the record of the invocation. */
function resultsFor(record: Message, { state, atMs, response }: RunEnd): FollowUp[] {
  const { invoke } = record.settings;
  return invoke ? [resultOf(record, invoke.result, invokeResult(record.body, state, response), atMs)] : [];
}

/**
 * Cancels the remaining messages of ended runs, in batches: one transaction for twenty thousand messages would block all
 * other transactions. Also cancels the messages of runs that a crash left without their last batch (dead-runs.ts). After
 * a restart the loop continues at once. Call `noteNext` for every end of a run that leaves messages.
 */
export function cancelLoop(context: Pick<EngineDeps, 'store' | 'clock' | 'log'>): DueLoop {
  const { store, clock } = context;
  return new DueLoop(context, 'cancel_failed', () => store.runs.cancelRemaining({ nowMs: clock.nowMs() }));
}
