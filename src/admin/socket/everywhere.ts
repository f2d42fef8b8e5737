/** Waits until all workers on the database have confirmed a change of projects, tokens or keys. */

import type { Millis, WorkerId } from '../../engine/model.ts';
import type { Clock } from '../../engine/ports.ts';
import type { Store } from '../../store/store.ts';

/** Workers are notified at once; this is the interval between two checks of their confirmations. */
const LOOK_MS = 50;
/** Extra time for a heartbeat that was under way, and for what follows from it. */
const GRACE_MS = 2_000;

/**
 * Resolves with an empty list when all live workers have confirmed the change. Otherwise it resolves, after the time in
 * which a silent worker expires, with the workers that have not confirmed it: they live but have not read the accounts.
 * `workerTimeoutMs`: a worker without a heartbeat for this long has expired, and rejects requests until it has read the change. `self`:
 * the worker that asks, which knows the change already. Throws `StoreUnavailable`.
 */
export async function untilAllKnow(
  store: { workers: Pick<Store['workers'], 'workersWithOldAccounts'> },
  clock: Clock,
  workerTimeoutMs: Millis,
  self?: WorkerId,
): Promise<WorkerId[]> {
  const untilMs = clock.elapsedMs + workerTimeoutMs + GRACE_MS;
  const { accountsVersion } = await store.workers.workersWithOldAccounts({});
  while (true) {
    const { behind } = await store.workers.workersWithOldAccounts({ accountsVersion });
    const others = behind.filter((worker) => worker !== self);
    if (others.length === 0 || clock.elapsedMs > untilMs) return others;
    await new Promise<void>((resolve) => clock.startTimer(LOOK_MS, resolve));
  }
}
