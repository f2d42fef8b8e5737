/**
 * What may have been in force when something started? A client knows of a change only when it asked for it and when it
 * heard the answer; in between, and for ever when it heard none, both the old and the new may hold.
 */
import type { Millis } from '../../src/engine/model.ts';
import type { Call } from './ledger.ts';

export interface Change<T> {
  value: T;
  begunAtMs: Millis;
  endedAtMs: Millis;
  /** Whether it surely took effect between the two. */
  isCertain: boolean;
}

/** The change that `call` made, if any; `undefined` when it was refused. */
export function changeOf<T>(call: Call, value: T, isCertain = true): Change<T> | undefined {
  if (call.fortune === 'rejected') return undefined;
  const { begunAtMs, endedAtMs, fortune } = call;
  return { value, begunAtMs, endedAtMs, isCertain: isCertain && fortune === 'acked' };
}

/** Holds from the beginning on. */
export function initially<T>(value: T): Change<T> {
  return { value, begunAtMs: -Infinity, endedAtMs: -Infinity, isCertain: true };
}

/** All values that may have been in force at some time from `fromMs` to `toMs`. */
export function possibleValues<T>(changes: readonly Change<T>[], fromMs: Millis, toMs: Millis = fromMs): T[] {
  const lastCertain = changes.reduce(
    (latest, { isCertain, begunAtMs, endedAtMs }) =>
      isCertain && endedAtMs < fromMs ? Math.max(latest, begunAtMs) : latest,
    -Infinity,
  );
  return changes
    .filter(({ begunAtMs, endedAtMs }) => begunAtMs <= toMs && endedAtMs >= lastCertain)
    .map(({ value }) => value);
}
