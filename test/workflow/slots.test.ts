/** How is a slot of a journal named (P8)? */
import { expect, test } from 'vitest';
import {
  INITIAL_SLOT,
  keyOfCall,
  slotOfCall,
  slotOfCallResult,
  slotOfContent,
  slotOfInvocation,
  slotOfPlan,
  slotOfResult,
  slotOfWait,
  stepIdOfResult,
  stepIdOfSlot,
} from '../../src/workflow/slots.ts';

test('the names in databases that are there already stay what they are', () => {
  expect([INITIAL_SLOT, slotOfResult(4), slotOfPlan(4), slotOfCall(4), slotOfCallResult(90)]).toEqual([
    '0',
    's4',
    'p4',
    'c4',
    'f90',
  ]);
  expect([slotOfWait(4), slotOfInvocation(4), slotOfContent('Zm9v')]).toEqual(['w4', 'i4', 'hZm9v']);
});

test('the slots that a step has name it', () => {
  const slots = [slotOfResult, slotOfPlan, slotOfCall, slotOfWait, slotOfInvocation];
  expect(slots.map((slotOf) => stepIdOfSlot(slotOf(12)))).toEqual([12, 12, 12, 12, 12]);
});

test('a slot that is named by something else names no step', () => {
  expect([INITIAL_SLOT, slotOfCallResult(90), slotOfContent('12')].map(stepIdOfSlot)).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

test('only the slot of a result names the step of one, and only that of a call result a call', () => {
  expect([slotOfResult(3), slotOfPlan(3)].map(stepIdOfResult)).toEqual([3, undefined]);
  expect([slotOfCallResult(90), slotOfCall(3)].map(keyOfCall)).toEqual([90, undefined]);
});
