/** When do all workers on the database go by what was just changed of its projects, tokens and keys? */
import type { Millis, WorkerId } from '../../engine/model.ts';
import type { Clock } from '../../engine/ports.ts';
import type { WorkerStore } from '../../engine/workers/store.ts';

export interface EverywhereOptions {
  store: { workers: Pick<WorkerStore, 'workersBehind'> };
  clock: Clock;
  /** Who is silent for so long is no worker any more, and admits nobody before it has heard of the change. */
  workerTimeoutMs: Millis;
  /** The one that asks, which knows. */
  self?: WorkerId;
}

/** Workers are told at once; this is between two looks whether they have said that they know. */
const LOOK_MS = 50;
/** For a heartbeat that was under way and what follows from it. */
const GRACE_MS = 2_000;

/**
 * Resolves when all that live have said so, or to those that had not by the time at which each that says nothing would have been
 * taken for dead: they live, and do not read accounts, as programs of an earlier version do not say. Throws `StoreUnavailable`.
 */
export async function untilAllKnow({ store, clock, workerTimeoutMs, self }: EverywhereOptions): Promise<WorkerId[]> {
  const untilMs = clock.elapsedMs + workerTimeoutMs + GRACE_MS;
  const { accountsVersion } = await store.workers.workersBehind({});
  while (true) {
    const { behind } = await store.workers.workersBehind({ accountsVersion });
    const others = behind.filter((worker) => worker !== self);
    if (others.length === 0 || clock.elapsedMs > untilMs) return others;
    await new Promise<void>((resolve) => clock.startTimer(LOOK_MS, resolve));
  }
}
