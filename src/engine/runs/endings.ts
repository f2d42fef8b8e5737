/**
 * What follows from the end of a run: the results of the invocations that wait for it. Whoever ends a run asks here. What a
 * message that failed for good brings with it is saved with its settle; for the others it is done here.
 */
import type { EndState, Run } from '../../workflow/model.ts';
import { invokeResult } from '../../workflow/results.ts';
import type { Intake } from '../intake.ts';
import type { FollowUp, Message, Millis, NewMessage, RunEnding } from '../model.ts';
import type { EndedAs, RunStore } from '../run-stores.ts';
import { resultOf } from './record-results.ts';

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

export interface EndingDeps {
  store: Pick<RunStore, 'endRuns'>;
  intake: Intake;
}

/** The ending of `run` as it is now, and what follows from it. */
export async function endingOf(store: Pick<RunStore, 'findRecords'>, run: Run, end: RunEnd): Promise<Ending> {
  const ending: RunEnding = { runKey: run.key, runVersion: run.version, ...end };
  if (run.invokers.length === 0) return { ending, follows: [] };
  const records = await store.findRecords(run.projectId, run.invokers);
  return { ending, follows: records.flatMap((record) => resultFor(record, end)) };
}

/** Saves `ends` in one transaction and answers what became of each. Throws `StoreUnavailable`. */
export async function saveEndings(
  ends: readonly Ending[],
  nowMs: Millis,
  { store, intake }: EndingDeps,
): Promise<EndedAs[]> {
  const drafts = await intake.draftsOf(ends.flatMap(({ follows }) => follows));
  const save = (news: NewMessage[]) => {
    let end = 0;
    const whole = ends.map(({ ending, follows }) => {
      const begin = end;
      end += follows.length;
      return { ending, follows: news.slice(begin, end) };
    });
    return store.endRuns(whole, nowMs);
  };
  return intake.save(drafts, save, (answers) =>
    answers.flatMap((answer, index) =>
      answer.kind === 'ended' ? answer.follows : (ends[index]?.follows ?? []).map(() => undefined),
    ),
  );
}

/** The message that tells the parent, made of what the invocation was registered with. */
function resultFor(record: Message, { state, atMs, response }: RunEnd): FollowUp[] {
  const { invoke } = record.settings;
  return invoke ? [resultOf(record, invoke.result, invokeResult(record.body, state, response), atMs)] : [];
}
