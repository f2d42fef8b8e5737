/** The entry keys of journals (P8). */
import { expect, test } from 'vitest';
import {
  entryKeyOfCall,
  entryKeyOfCallResult,
  entryKeyOfContent,
  entryKeyOfInvocation,
  entryKeyOfPlan,
  entryKeyOfResult,
  entryKeyOfWait,
  INITIAL_ENTRY_KEY,
  keyOfCall,
  stepIdOfEntryKey,
  stepIdOfResult,
} from '../../src/workflow/entry-keys.ts';

test('the entry keys in existing databases never change', () => {
  expect([
    INITIAL_ENTRY_KEY,
    entryKeyOfResult(4),
    entryKeyOfPlan(4),
    entryKeyOfCall(4),
    entryKeyOfCallResult(90),
  ]).toEqual(['0', 's4', 'p4', 'c4', 'f90']);
  expect([entryKeyOfWait(4), entryKeyOfInvocation(4), entryKeyOfContent('Zm9v')]).toEqual(['w4', 'i4', 'hZm9v']);
});

test('the entry keys of a step name its id', () => {
  const makers = [entryKeyOfResult, entryKeyOfPlan, entryKeyOfCall, entryKeyOfWait, entryKeyOfInvocation];
  expect(makers.map((entryKeyOf) => stepIdOfEntryKey(entryKeyOf(12)))).toEqual([12, 12, 12, 12, 12]);
});

test('other entry keys name no step', () => {
  expect([INITIAL_ENTRY_KEY, entryKeyOfCallResult(90), entryKeyOfContent('12')].map(stepIdOfEntryKey)).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

test('only the entry key of a result names its step, and only that of a call result its call', () => {
  expect([entryKeyOfResult(3), entryKeyOfPlan(3)].map(stepIdOfResult)).toEqual([3, undefined]);
  expect([entryKeyOfCallResult(90), entryKeyOfCall(3)].map(keyOfCall)).toEqual([90, undefined]);
});
