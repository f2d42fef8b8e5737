/**
 * The ledger of the runs, kept outside the server: what was triggered, notified and cancelled, and the responses. As in
 * `ledger.ts`, an operation without a response is unknown: it may or may not have taken effect.
 */
import type { ProgramName } from './programs.ts';

export type Asked = 'acked' | 'unknown';

export interface TriggeredRun {
  runId: string;
  tag: string;
  program: ProgramName;
  trigger: Asked;
  /** Undefined while nobody asked; a cancel that was acknowledged stays so. */
  cancel: Asked | undefined;
  /** Notifications sent, by what they said. */
  news: Map<string, Asked>;
  /** What a notification said that has certainly found the wait. */
  wokenBy: string | undefined;
}

export class RunBook {
  readonly #runs = new Map<string, TriggeredRun>();

  /** To be called before the request goes out, since its messages may arrive before its answer. */
  attempted(runId: string, tag: string, program: ProgramName): TriggeredRun {
    const run: TriggeredRun = {
      runId,
      tag,
      program,
      trigger: 'unknown',
      cancel: undefined,
      news: new Map(),
      wokenBy: undefined,
    };
    this.#runs.set(runId, run);
    return run;
  }

  /** Undefined for a run that was invoked. */
  find(runId: string): TriggeredRun | undefined {
    return this.#runs.get(runId);
  }

  /** Whether a run of `program` was triggered for certain and nobody has asked to cancel it: it must come to its own end. */
  isLeftAlone(program: ProgramName): boolean {
    return this.runs().some((run) => run.program === program && run.trigger === 'acked' && run.cancel === undefined);
  }

  /** Runs that were cancelled for certain. */
  cancelled(): number {
    return this.runs().filter(({ cancel }) => cancel === 'acked').length;
  }

  runs(): readonly TriggeredRun[] {
    return [...this.#runs.values()];
  }
}
