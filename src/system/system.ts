/** The real clock, event loop and randomness: only this file and the composition root use them directly. */
import { randomFillSync } from 'node:crypto';
import type { Machine, Randomness } from '../engine/ports.ts';
import { SteadyClock } from '../engine/workers/steady-clock.ts';

/** The longest that `setTimeout` can count; beyond it, it would fire at once. */
const TIMER_MS_MAX = 2 ** 31 - 1;

const machine: Machine = {
  wallMs: () => Date.now(),
  get elapsedMs() {
    return performance.now();
  },
  startTimer(delayMs, task) {
    let remainingMs = Math.max(0, Math.ceil(delayMs));
    let timer: NodeJS.Timeout;
    const wait = () => {
      const stepMs = Math.min(remainingMs, TIMER_MS_MAX);
      remainingMs -= stepMs;
      timer = setTimeout(remainingMs > 0 ? wait : task, stepMs);
    };
    wait();
    return { cancel: () => clearTimeout(timer) };
  },
};

export const systemClock = new SteadyClock(machine);

export function pause(delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    systemClock.startTimer(delayMs, resolve);
  });
}

/** Resolves when every socket that has input in this turn of the event loop is read. */
export function endOfTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Bytes drawn at a time: one call to the kernel for some hundred ids. */
const POOL_BYTES = 8192;

/** Cryptographically strong. Bytes that were given out are never given out again. */
export function createSystemRandomness(): Randomness {
  const pool = new Uint8Array(POOL_BYTES);
  let taken = POOL_BYTES;
  return {
    bytes(count) {
      if (count > POOL_BYTES) return randomFillSync(new Uint8Array(count));
      if (taken + count > POOL_BYTES) {
        randomFillSync(pool);
        taken = 0;
      }
      const bytes = pool.slice(taken, taken + count); // a copy: the pool is filled anew under a view
      taken += count;
      return bytes;
    },
  };
}
