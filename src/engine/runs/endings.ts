/**
 * What follows from the end of a run: the results of the invocations that wait for it. Whoever ends a run asks here. What a
 * message that failed for good brings with it is saved with its settle; for the others it is done here.
 */
import type { EndState, Run } from '../../workflow/model.ts';
import { invokeResult } from '../../workflow/results.ts';
import type { FollowUp, Message, Millis, NewMessage, RunEnding } from '../model.ts';
import { type Places, setGoing } from '../placement.ts';
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
  store: { runs: Pick<RunStore, 'endRuns'> };
  places: Places;
  /** Gives each a key, an id and a place. */
  placeFollowUps(follows: FollowUp[]): Promise<NewMessage[]>;
}

/** The ending of `run` as it is now, and what follows from it. */
export async function endingOf(store: { runs: Pick<RunStore, 'findRecords'> }, run: Run, end: RunEnd): Promise<Ending> {
  const ending: RunEnding = { runKey: run.key, runVersion: run.version, ...end };
  if (run.invokers.length === 0) return { ending, follows: [] };
  const records = await store.runs.findRecords(run.projectId, run.invokers);
  return { ending, follows: records.flatMap((record) => resultFor(record, end)) };
}

/**
 * Saves `ends` in one transaction and answers what became of each. Sets going what follows, or gives its places back,
 * whatever happens. Throws `StoreUnavailable`.
 */
export async function saveEndings(
  ends: readonly Ending[],
  nowMs: Millis,
  { store, places, placeFollowUps }: EndingDeps,
): Promise<EndedAs[]> {
  const placed: { ending: RunEnding; follows: NewMessage[] }[] = [];
  let saved: EndedAs[] = [];
  try {
    for (const { ending, follows } of ends) {
      placed.push({ ending, follows: follows.length === 0 ? [] : await placeFollowUps(follows) });
    }
    saved = await store.runs.endRuns(placed, nowMs);
  } finally {
    for (const [index, { follows }] of placed.entries()) {
      const answer = saved[index];
      follows.forEach((entry, at) => {
        setGoing(entry, answer?.kind === 'ended' ? answer.follows[at] : undefined, places);
      });
    }
  }
  return saved;
}

/** The message that tells the parent, made of what the invocation was registered with. */
function resultFor(record: Message, { state, atMs, response }: RunEnd): FollowUp[] {
  const { invoke } = record.settings;
  return invoke ? [resultOf(record, invoke.result, invokeResult(record.body, state, response), atMs)] : [];
}
