/** How does a test wait for something that another process or the network will do? */
import { setTimeout } from 'node:timers/promises';

/** Less than a test may take, so that what was waited for is said; more than the slowest machine needs. */
const WITHIN_MS = 60_000;

/**
 * Resolves to the first value of `look` that is not undefined, null or false. Rejects after `withinMs`, saying what was
 * waited for. For the world outside this process only: inside it, wait for a signal or drive the simulated clock.
 */
export async function eventually<T>(
  what: string | (() => string),
  look: () => T | Promise<T>,
  withinMs = WITHIN_MS,
): Promise<Exclude<T, undefined | null | false>> {
  const deadlineMs = Date.now() + withinMs;
  while (true) {
    const value = await look();
    if (value !== undefined && value !== null && value !== false) {
      return value as Exclude<T, undefined | null | false>;
    }
    if (Date.now() > deadlineMs)
      throw new Error(`waited ${withinMs} ms in vain for ${typeof what === 'string' ? what : what()}`);
    await setTimeout(5);
  }
}
