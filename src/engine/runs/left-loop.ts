/**
 * Cancels what is left of runs that are over, in pieces: one transaction for twenty thousand messages would keep all
 * others waiting. Its first piece finishes what a crash interrupted.
 */
import { DueLoop } from '../due-loop.ts';
import type { Clock, EventLog } from '../ports.ts';
import type { RunStore } from './stores.ts';

interface LeftLoopDeps {
  store: { runs: Pick<RunStore, 'cancelLeft'> };
  clock: Clock;
  log: EventLog;
}

/** The loop must be told of each end that leaves more (`noteNext`). */
export function leftLoop({ store, clock, log }: LeftLoopDeps): DueLoop {
  const doPiece = async () => ((await store.runs.cancelLeft(clock.nowMs())) ? ('more' as const) : Infinity);
  return new DueLoop({ clock, log, failure: 'cancel_failed', doPiece });
}
