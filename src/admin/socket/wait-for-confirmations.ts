/** Waits until all workers on the database have confirmed a change of projects, tokens or keys. */

import type { Millis, WorkerId } from '../../engine/model.ts';
import type { Clock } from '../../engine/ports.ts';
import type { Store } from '../../store/store.ts';

/** Interval between two checks of the workers' confirmations. The workers themselves are notified at once. */
const POLL_INTERVAL_MS = 50;
/** Extra time in which a worker can end the heartbeat in progress and then read the accounts. */
const GRACE_MS = 2_000;

/**
 * Resolves to an empty list when all live workers have confirmed the change. After the timeout, resolves to the workers
 * that send heartbeats but have not read the change. `workerTimeoutMs`: a worker without a heartbeat for this long has
 * expired, and rejects requests until this worker has read the change. `self`: the calling worker, which needs no
 * confirmation. Throws `StoreUnavailable`.
 */
export async function waitForConfirmations(
  store: { workers: Pick<Store['workers'], 'workersWithOldAccounts'> },
  clock: Clock,
  workerTimeoutMs: Millis,
  self?: WorkerId,
): Promise<WorkerId[]> {
  const deadlineMs = clock.elapsedMs + workerTimeoutMs + GRACE_MS;
  const { accountsVersion } = await store.workers.workersWithOldAccounts({});
  while (true) {
    const { behind } = await store.workers.workersWithOldAccounts({ accountsVersion });
    const others = behind.filter((worker) => worker !== self);
    if (others.length === 0 || clock.elapsedMs > deadlineMs) return others;
    await new Promise<void>((resolve) => clock.startTimer(POLL_INTERVAL_MS, resolve));
  }
}
