/** Ends waits whose deadline has come. If a notification comes at the same time, only one of the two is recorded. */
import type { Store } from '../../store/store.ts';
import { DueLoop } from '../due-loop.ts';
import type { EventLog } from '../ports.ts';
import { timedOutResult } from './wait-results.ts';
import { type WakeDeps, wake } from './wakes.ts';

/** Waiters woken in one transaction. */
const PIECE = 200;

interface WaiterLoopDeps extends WakeDeps {
  store: { waiters: Pick<Store['waiters'], 'dueWaiters' | 'resolveWaiters'> };
  log: EventLog;
}

/** The loop must be told the deadline of each wait that is registered (`noteNext`). */
export function waiterLoop(deps: WaiterLoopDeps): DueLoop {
  const { store, clock, log } = deps;
  const doPiece = async () => {
    const { due, nextAtMs = Infinity } = await store.waiters.dueWaiters({ nowMs: clock.nowMs(), limit: PIECE });
    if (due.length === 0) return nextAtMs;
    await wake(due, 'deadline', timedOutResult, deps);
    return 'more';
  };
  return new DueLoop({ clock, log, failure: 'waiters_failed', doPiece });
}
