/** Waits for an effect of another process or of the network. */
import { setTimeout } from 'node:timers/promises';

/** Shorter than a test's own timeout, so that the error names what is missing; longer than the slowest machine needs. */
const WITHIN_MS = 60_000;

/**
 * Resolves to the first value of `look` that is not undefined, null or false. Rejects after `withinMs` with an error that names
 * `what`. Only for effects outside this process: inside it, wait for a signal or use the simulated clock.
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
      throw new Error(`waited ${withinMs} ms without success for ${typeof what === 'string' ? what : what()}`);
    await setTimeout(5);
  }
}
