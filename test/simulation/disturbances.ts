/** When may a message be late? */
import type { Millis } from '../../src/engine/model.ts';
import type { World } from './world.ts';

/** Slower than any pause that the simulated world itself makes. */
export const PROMPT_MS: Millis = 5_000;
/** After a crash, a refusal or a set clock, work may have to be caught up with. */
export const AFTERMATH_MS: Millis = 60_000;

/** Whether nothing that delays messages has happened between `atMs` and `untilMs`, nor shortly before. */
export function isQuietSince(world: World, atMs: Millis, untilMs: Millis = Infinity): boolean {
  return !world.disturbances.some((each) => each >= atMs - AFTERMATH_MS && each <= untilMs);
}
