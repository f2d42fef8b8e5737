/** What is wrong after a run, in words: the same for all that keep these books. */
import type { Examination } from '../../src/operations/examine.ts';
import type { CallbackVerdict } from './callback-book.ts';
import type { LaneVerdict } from './lane-checks.ts';
import type { Verdict } from './ledger.ts';
import type { CheckpointVerdict } from './runs/checkpoint-checks.ts';
import type { JournalVerdict } from './runs/journal-checks.ts';
import type { RunVerdict } from './runs/run-checks.ts';

/** By what is wrong, whom it concerns. */
export type Offenders = Readonly<Record<string, readonly string[]>>;

export interface Verdicts {
  verdict: Verdict;
  callbacks: CallbackVerdict;
  lanes: LaneVerdict;
}

export function offendersIn({ verdict, callbacks, lanes }: Verdicts): Offenders {
  return {
    lost: verdict.lost,
    unexpected: verdict.unexpected,
    repeated: [...verdict.unexplained, ...callbacks.unexplained],
    'not ended once': verdict.notEndedOnce,
    'nobody was told of': callbacks.untold,
    'told twice of': callbacks.toldTwice,
    'told of what is not': callbacks.toldOfNothing,
    'a callback was lost': callbacks.lost,
    'out of order': lanes.outOfOrder,
    'over its parallelism': lanes.overParallelism,
    'over its rate': lanes.overRate,
    'not held back': lanes.notHeldBack,
  };
}

export interface RunVerdicts {
  runs: RunVerdict;
  journals: JournalVerdict;
  checkpoints: CheckpointVerdict;
}

/** What is wrong whatever was disturbed. */
export function offendersInRuns({ runs, journals, checkpoints }: RunVerdicts): Offenders {
  return {
    lost: runs.lost,
    unexpected: runs.unexpected,
    'not ended once': runs.notEndedOnce,
    'ended wrongly': runs.endedWrongly,
    'returned wrongly': runs.returnedWrongly,
    'failures not told': runs.failuresNotTold,
    'changed after it was delivered': journals.changed,
    'recorded twice': journals.recordedTwice,
    misdirected: journals.misdirected,
    'kept and gone': checkpoints.gone,
  };
}

/** A line for each; empty after a sound run. */
export function inWords(offenders: Offenders): string[] {
  return Object.entries(offenders).flatMap(([what, whom]) => whom.map((one) => `${what}: ${one}`));
}

/** What `waypost doctor` found. */
export function brokenStatements({ findings }: Pick<Examination, 'findings'>): string[] {
  return findings.flatMap(({ statement, offenders }) => offenders.map((name) => `${name} breaks "${statement}"`));
}
