/** Describes the violations that a run found, for all harnesses. */
import type { Examination } from '../../src/admin/examine.ts';
import type { Broken } from './checks.ts';
import type { CheckpointVerdict } from './runs/checkpoint-checks.ts';
import type { JournalVerdict } from './runs/journal-checks.ts';
import type { RunVerdict } from './runs/run-checks.ts';

export interface RunVerdicts {
  runs: RunVerdict;
  journals: JournalVerdict;
  checkpoints: CheckpointVerdict;
}

/** Problems that no fault explains. */
export function brokenInRuns({ runs, journals, checkpoints }: RunVerdicts): Broken {
  return {
    'P1 lost': runs.lost,
    'P2 unexpected': runs.unexpected,
    'P2 not ended once': runs.notEndedOnce,
    'P17 ended wrongly': runs.endedWrongly,
    'P17 returned wrongly': runs.returnedWrongly,
    'P17 failures not told': runs.failuresNotTold,
    'P8 changed after it was delivered': journals.changed,
    'P8 recorded twice': journals.recordedTwice,
    'P8 misdirected': journals.misdirected,
    'P8 kept and gone': checkpoints.gone,
  };
}

/** One line for each finding; empty after a sound run. */
export function inWords(broken: Broken): string[] {
  return Object.entries(broken).flatMap(([what, whom]) => whom.map((one) => `${what}: ${one}`));
}

/** The findings of `waypost doctor`. */
export function brokenStatements({ findings }: Pick<Examination, 'findings'>): string[] {
  return findings.flatMap(({ statement, offenders }) => offenders.map((name) => `${name} breaks "${statement}"`));
}
