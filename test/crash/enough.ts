/**
 * Decides when a run has exercised enough to prove something. It counts events and never measures time, so on a busy machine a
 * run only takes longer.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { neverFull } from './lane-checks.ts';
import type { Lane, Ledger } from './ledger.ts';

export interface Need {
  /** Of what, in words. */
  what: string;
  /** How much of it there was so far: only grows. */
  count: () => number;
  atLeast: number;
}

// What is awaited takes seconds when nothing else runs, and minutes on a slow machine. A run without enough by then hangs.
const LIMIT_MS = 180_000;
// Often enough that what happens in between is little, and seldom enough to cost nothing.
const LOOK_EVERY_MS = 10;

/** So much more than there was when this was called. */
export function more(what: string, count: () => number, howMuch: number): Need {
  return { what, count, atLeast: count() + howMuch };
}

/** Resolves once all `needs` are met. Rejects with what is missing after three minutes, and with what `assertSound` throws. */
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

// What piled up in a lane goes out one by one, retries and callbacks included, or only so many in a second, and whoever was cut
// off is declared dead first. Shorter than a minute, after which retention would tidy up what nobody else does.
const STANDSTILL_MS = 30_000;
// A look may be a connection of its own.
const COUNT_EVERY_MS = 100;

/**
 * Resolves once `count` answers 0, or has not become less for so long. For what is unfinished: far cheaper than to read all logs
 * again and again, which say afterwards who is left.
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

/** That each lane was full once: what never came near its limit proves little. */
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
 * Lets `run` go on until `act` is over. What that is given throws once the load has met an answer that the contract does not
 * allow. Rejects with the first thing that goes wrong, once both have ended: nothing is started behind a failure.
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
