/**
 * Computes the settings that may have been in force at a time. A client knows only when it requested a change and when
 * the response arrived. Between these two times, or forever if no response arrives, both the old and the new value may be
 * in force.
 */
import type { Millis } from '../../src/engine/model.ts';
import type { Call } from './ledger.ts';

export interface Change<T> {
  value: T;
  startAtMs: Millis;
  endedAtMs: Millis;
  /** Whether the change certainly took effect between the two times. */
  isCertain: boolean;
}

/** The change that `call` may have made, or `undefined` if the call was rejected. */
export function changeOf<T>(call: Call, value: T, isCertain = true): Change<T> | undefined {
  if (call.result === 'rejected') return undefined;
  const { startAtMs, endedAtMs, result } = call;
  return { value, startAtMs, endedAtMs, isCertain: isCertain && result === 'acked' };
}

/** The value that is in force from the start. */
export function initially<T>(value: T): Change<T> {
  return { value, startAtMs: -Infinity, endedAtMs: -Infinity, isCertain: true };
}

/** All values that may have been in force at some time from `fromMs` to `toMs`. */
export function possibleValues<T>(changes: readonly Change<T>[], fromMs: Millis, toMs: Millis = fromMs): T[] {
  const lastCertain = changes.reduce(
    (latest, { isCertain, startAtMs, endedAtMs }) =>
      isCertain && endedAtMs < fromMs ? Math.max(latest, startAtMs) : latest,
    -Infinity,
  );
  return changes
    .filter(({ startAtMs, endedAtMs }) => startAtMs <= toMs && endedAtMs >= lastCertain)
    .map(({ value }) => value);
}
