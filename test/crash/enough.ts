/**
 * Decides when a run has exercised enough to prove something. It counts events and never measures time, so on a busy machine a
 * run only takes longer.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { neverFull } from './lane-checks.ts';
import type { Lane, Ledger } from './ledger.ts';

export interface Need {
  /** A description of the counted events. */
  what: string;
  /** The count so far, which only grows. */
  count: () => number;
  atLeast: number;
}

// The needs are met within seconds on an idle machine, and minutes on a slow one. A run that takes longer hangs.
const LIMIT_MS = 180_000;
// Frequent enough to stop soon after the needs are met, and rare enough to cost nothing.
const LOOK_EVERY_MS = 10;

/** Requires that `count` grows by `howMuch` from now on. */
export function more(what: string, count: () => number, howMuch: number): Need {
  return { what, count, atLeast: count() + howMuch };
}

/** Resolves once all `needs` are met. Rejects with the missing needs after three minutes, and with errors of `assertSound`. */
export async function untilEnough(needs: readonly Need[], assertSound: () => void = () => {}): Promise<void> {
  const limit = performance.now() + LIMIT_MS;
  let open = needs;
  for (;;) {
    assertSound();
    open = open.filter(({ count, atLeast }) => count() < atLeast);
    if (open.length === 0) return;
    if (performance.now() > limit) {
      const missing = open.map(({ what, count, atLeast }) => `${what}: ${count()} of ${atLeast}`);
      throw new Error(`not enough happens: ${missing.join(', ')}`);
    }
    await sleep(LOOK_EVERY_MS);
  }
}

// The backlog of a lane is delivered one by one, including retries and callbacks, or at a limited rate, and a
// disconnected worker must expire first. The limit is shorter than a minute, after which retention would hide missing
// cleanup.
const STANDSTILL_MS = 30_000;
// The check may open a connection.
const COUNT_EVERY_MS = 100;

/**
 * Resolves once `count` returns 0, or has not decreased for `standstillMs`. To count unfinished work is far cheaper than
 * to read all logs repeatedly. Afterwards the logs name the messages that are left.
 */
export async function untilNoneIsLeft(
  count: () => number | Promise<number>,
  standstillMs = STANDSTILL_MS,
): Promise<void> {
  let fewest = Infinity;
  for (let fewestAtMs = performance.now(); performance.now() < fewestAtMs + standstillMs; ) {
    const left = await count();
    if (left === 0) return;
    if (left < fewest) fewestAtMs = performance.now();
    fewest = Math.min(fewest, left);
    await sleep(COUNT_EVERY_MS);
  }
}

/** Requires that each lane was full once: a lane that was never near its limit proves little. */
export function fullLanes(lanes: readonly Lane[], ledger: Ledger): Need {
  const limited = lanes.filter(({ parallelism }) => parallelism !== undefined);
  let open: readonly Lane[] = limited;
  const count = () => {
    open = neverFull(open, ledger.laneEvents());
    return limited.length - open.length;
  };
  return { what: 'lanes that were full', count, atLeast: limited.length };
}

/**
 * Keeps `run` running until `act` has ended. The function passed to `act` throws once the load has received a response
 * that the contract does not allow. Rejects with the first error, but only when both have ended, so that nothing is
 * started after a failure.
 */
export async function underLoad(
  run: (signal: AbortSignal) => Promise<void>,
  act: (assertSound: () => void) => Promise<void>,
): Promise<void> {
  const stop = new AbortController();
  let failure: unknown;
  const running = run(stop.signal).catch((error: unknown) => {
    failure = error;
  });
  const assertSound = () => {
    if (failure !== undefined) throw failure;
  };
  try {
    await act(assertSound);
  } finally {
    stop.abort();
    await running;
  }
  assertSound();
}
