/**
 * Cancels what is left of runs that are over, in pieces: one transaction for twenty thousand messages would keep all
 * others waiting. The same becomes of a run that a crash has kept from being made whole (dead-runs.ts). Its first piece
 * finishes what a crash interrupted.
 */
import type { Store } from '../../store/store.ts';
import { DueLoop } from '../due-loop.ts';
import type { Clock, EventLog } from '../ports.ts';

interface LeftLoopDeps {
  store: { runs: Pick<Store['runs'], 'cancelLeft'> };
  clock: Clock;
  log: EventLog;
}

/** The loop must be told of each end that leaves more (`noteNext`), also of one that it finds in the store. */
export function leftLoop({ store, clock, log }: LeftLoopDeps): DueLoop {
  return new DueLoop({
    clock,
    log,
    failure: 'cancel_failed',
    doPiece: () => store.runs.cancelLeft({ nowMs: clock.nowMs() }),
  });
}
