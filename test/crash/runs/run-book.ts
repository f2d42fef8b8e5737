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
  /** Undefined if no cancel was requested. An acknowledged cancel remains acknowledged. */
  cancel: Asked | undefined;
  /** The notifications that were sent, by content. */
  news: Map<string, Asked>;
  /** The content of a notification that has certainly reached the wait. */
  wokenBy: string | undefined;
}

export class RunBook {
  readonly #runs = new Map<string, TriggeredRun>();

  /** Must be called before the request is sent, since messages of the run may arrive before the response. */
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

  /** Returns `undefined` for an invoked run. */
  find(runId: string): TriggeredRun | undefined {
    return this.#runs.get(runId);
  }

  /** Whether a run of `program` was certainly triggered and no cancel was requested, so that it must end by itself. */
  isLeftAlone(program: ProgramName): boolean {
    return this.runs().some((run) => run.program === program && run.trigger === 'acked' && run.cancel === undefined);
  }

  /** Runs that were certainly cancelled. */
  cancelled(): number {
    return this.runs().filter(({ cancel }) => cancel === 'acked').length;
  }

  runs(): readonly TriggeredRun[] {
    return [...this.#runs.values()];
  }
}
