/** How a run ends, with the results of the invocations that wait for it, and how what remains of it is cancelled. */
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
  /** What the run returned. */
  response?: Uint8Array;
}

/** A run's end, and what follows from it. */
export interface Ending {
  ending: RunEnding;
  follows: FollowUp[];
}

/** The ending of `run` in its current version, and what follows from it. */
export async function endingOf(
  store: { runs: Pick<Store['runs'], 'findRecords'> },
  run: Run,
  end: RunEnd,
): Promise<Ending> {
  const ending: RunEnding = { projectId: run.projectId, runKey: run.key, runVersion: run.version, ...end };
  if (run.invokers.length === 0) return { ending, follows: [] };
  const records = await store.runs.findRecords({ projectId: run.projectId, keys: run.invokers });
  return { ending, follows: records.flatMap((record) => resultFor(record, end)) };
}

/** The message that brings the parent the result, made from what the invocation was registered with. */
function resultFor(record: Message, { state, atMs, response }: RunEnd): FollowUp[] {
  const { invoke } = record.settings;
  return invoke ? [resultOf(record, invoke.result, invokeResult(record.body, state, response), atMs)] : [];
}

/**
 * Cancels what remains of ended runs, in batches: one transaction for twenty thousand messages would block all others.
 * The same happens to a run that a crash has left saved only in part (dead-runs.ts). The first batch finishes what a
 * crash interrupted. Every end that leaves more must be noted (`noteNext`).
 */
export function leftLoop(context: Pick<EngineDeps, 'store' | 'clock' | 'log'>): DueLoop {
  const { store, clock } = context;
  return new DueLoop(context, 'cancel_failed', () => store.runs.cancelLeft({ nowMs: clock.nowMs() }));
}
