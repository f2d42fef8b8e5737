/** Tests which settings may have been in force, according to the calls of clients. */
import { describe, expect, test } from 'vitest';
import type { Call, CallResult } from './ledger.ts';
import { type Change, changeOf, initially, possibleValues } from './settings-in-force.ts';

function call(startAtMs: number, endedAtMs: number, result: CallResult = 'acked'): Call {
  return { result, startAtMs, endedAt: 0, endedAtMs };
}

function changes(...all: (Change<string> | undefined)[]): Change<string>[] {
  return [initially('first'), ...all.flatMap((change) => change ?? [])];
}

describe('what may have been in force', () => {
  const acked = changeOf(call(10, 20), 'second');

  test('is the old value before a change, both until its response, and the new value after it', () => {
    expect(possibleValues(changes(acked), 9)).toEqual(['first']);
    expect(possibleValues(changes(acked), 10)).toEqual(['first', 'second']);
    expect(possibleValues(changes(acked), 20)).toEqual(['first', 'second']);
    expect(possibleValues(changes(acked), 21)).toEqual(['second']);
  });

  test('is both after a lost response, until a later change is confirmed', () => {
    const unheard = changeOf(call(10, 20, 'unknown'), 'second');
    expect(possibleValues(changes(unheard), 1_000)).toEqual(['first', 'second']);
    expect(possibleValues(changes(unheard, changeOf(call(30, 40), 'third')), 41)).toEqual(['third']);
  });

  test('is either of two concurrent changes', () => {
    const other = changeOf(call(15, 25), 'third');
    expect(possibleValues(changes(acked, other), 100)).toEqual(['second', 'third']);
  });

  test('is never a rejected change', () => {
    expect(changeOf(call(10, 20, 'rejected'), 'second')).toBeUndefined();
  });

  test('is every value that was in force at some time of a period', () => {
    expect(possibleValues(changes(acked), 5, 30)).toEqual(['first', 'second']);
  });
});
