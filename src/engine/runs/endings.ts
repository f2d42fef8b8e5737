/**
 * What follows from the end of a run: the results of the invocations that wait for it. When a message that failed for
 * good ends the run, this is saved with the settle of the message. Every other ending is saved here, by `endRuns`.
 */
import type { Store } from '../../store/store.ts';
import type { EndState, Run, RunKey } from '../../workflow/model.ts';
import { invokeResult } from '../../workflow/results.ts';
import type { Intake } from '../messages/intake.ts';
import type { FollowUp, Message, Millis, NewMessage, RunEnding } from '../model.ts';
import type { Clock } from '../ports.ts';
import type { Reports } from '../reports.ts';
import type { ActiveRuns } from './active-runs.ts';
import { resultOf } from './record-results.ts';
import type { EndedAs } from './stores.ts';

export interface RunEnd {
  state: EndState;
  atMs: Millis;
  /** What the run returned. */
  response?: Uint8Array;
}

/** A run's end, and what follows from it. */
interface Ending {
  ending: RunEnding;
  follows: FollowUp[];
}

export interface EndingDeps {
  store: { runs: Pick<Store['runs'], 'endRuns' | 'findRecords'> };
  clock: Clock;
  intake: Intake;
  active: ActiveRuns;
  /** Told of each run that was ended. */
  noteRunEnd: (runKey: RunKey, isMoreLeft?: boolean) => void;
  reports: Reports;
}

/** The ending of `run` as it is now, and what follows from it. */
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

/** Ends `runs` in one transaction, and answers what became of each. Throws `StoreUnavailable`. */
export async function endRuns(
  runs: readonly Run[],
  end: Pick<RunEnd, 'response'> & { state: Exclude<EndState, 'RUN_FAILED'> },
  { store, clock, intake, active, noteRunEnd, reports }: EndingDeps,
): Promise<EndedAs['kind'][]> {
  const atMs = clock.nowMs();
  const ends: Ending[] = [];
  for (const run of runs) ends.push(await endingOf(store, run, { ...end, atMs }));
  const save = (newMessages: NewMessage[]) => {
    const rest = [...newMessages];
    const placed = ends.map(({ ending, follows }) => ({ ending, follows: rest.splice(0, follows.length) }));
    return store.runs.endRuns({ endings: placed, nowMs: atMs });
  };
  const drafts = await intake.draftsOf(ends.flatMap(({ follows }) => follows));
  const answers = await intake.save(drafts, save, (all) =>
    all.flatMap((as, index) => (as.kind === 'ended' ? as.follows : (ends[index]?.follows ?? []).map(() => undefined))),
  );
  for (const [index, run] of runs.entries()) {
    active.forget(run.projectId, run.id);
    const answer = answers[index];
    if (answer?.kind !== 'ended') continue;
    noteRunEnd(run.key, answer.isMoreLeft);
    reports.runEnded(run, end.state, atMs);
  }
  return answers.map(({ kind }) => kind);
}

/** The message that brings the parent the result, made from what the invocation was registered with. */
function resultFor(record: Message, { state, atMs, response }: RunEnd): FollowUp[] {
  const { invoke } = record.settings;
  return invoke ? [resultOf(record, invoke.result, invokeResult(record.body, state, response), atMs)] : [];
}
