/**
 * The real clock, event loop and randomness. Other files, except the composition root, use these only through interfaces.
 */
import { randomFillSync } from 'node:crypto';
import type { Machine, Randomness } from '../engine/ports.ts';
import { SteadyClock } from '../engine/workers/steady-clock.ts';

/** The longest delay of `setTimeout`; a timer with a longer delay would fire immediately. */
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

/** Resolves after all sockets that have input in this iteration of the event loop have been read. */
export function endOfTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** The number of random bytes that are read at a time: one system call for some hundred ids. */
const POOL_BYTES = 8192;

/** Cryptographically strong. No bytes are returned twice. */
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
      const bytes = pool.slice(taken, taken + count); // a copy: refilling the pool would change a view
      taken += count;
      return bytes;
    },
  };
}
