/** Ends waits whose deadline has come. A notification at the same time may come first: one of the two is recorded. */
import type { Millis } from '../model.ts';
import type { EventLog } from '../ports.ts';
import type { WaiterStore } from '../run-stores.ts';
import { timedOutResult } from '../runs/wait-results.ts';
import { type WakeDeps, wake } from '../runs/wakes.ts';
import { DueLoop } from './due-loop.ts';

/** Waiters woken in one transaction. */
const PIECE = 200;

export interface WaiterLoopDeps extends WakeDeps {
  store: { waiters: Pick<WaiterStore, 'dueWaiters' | 'resolveWaiters'> };
  log: EventLog;
}

export class WaiterLoop {
  readonly #deps: WaiterLoopDeps;
  readonly #loop: DueLoop;

  constructor(deps: WaiterLoopDeps) {
    this.#deps = deps;
    const { clock, log } = deps;
    this.#loop = new DueLoop({ clock, log, failure: 'waiters_failed', doPiece: () => this.#wakePiece() });
  }

  /** Ends what is due, or sets the timer for when something will be. */
  wake(): void {
    this.#loop.wake();
  }

  /** A wait was registered whose deadline is `atMs`. */
  noteDeadline(atMs: Millis): void {
    this.#loop.noteNext(atMs);
  }

  stop(): Promise<void> {
    return this.#loop.stop();
  }

  async #wakePiece(): Promise<'more' | Millis> {
    const { store, clock } = this.#deps;
    const { due, nextAtMs = Infinity } = await store.waiters.dueWaiters({ nowMs: clock.nowMs(), limit: PIECE });
    if (due.length === 0) return nextAtMs;
    await wake(due, timedOutResult, this.#deps);
    return 'more';
  }
}
