import { expect, it } from 'vitest';
import { BodyBudget } from '../../src/api/body-budget.ts';

it('takes up to its limit and gives back', () => {
  const budget = new BodyBudget(100);
  expect([budget.tryTake(60), budget.tryTake(41), budget.tryTake(40), budget.bytesUsed]).toEqual([
    true,
    false,
    true,
    100,
  ]);
  budget.giveBack(60);
  expect([budget.tryTake(61), budget.tryTake(60)]).toEqual([false, true]);
});

it('always has room for one body, so that a limit below a message does not refuse everything for ever', () => {
  const budget = new BodyBudget(10);
  expect([budget.tryTake(50), budget.tryTake(1)]).toEqual([true, false]);
});
