/** Decides whether recent faults explain a late message. */
import type { Millis } from '../../src/engine/model.ts';
import type { World } from './world.ts';

/** Longer than any pause that the simulated world makes without faults. */
export const PROMPT_MS: Millis = 5_000;
/** The time to catch up after a crash, a rejected transaction or a set clock. */
export const AFTERMATH_MS: Millis = 60_000;

/** Whether no fault that delays messages happened between `atMs` and `untilMs`, or shortly before. */
export function isQuietSince(world: World, atMs: Millis, untilMs: Millis = Infinity): boolean {
  return !world.disturbances.some((each) => each >= atMs - AFTERMATH_MS && each <= untilMs);
}
