import { expect, it } from 'vitest';
import { MemoryBudget } from '../../src/api/edge/memory-budget.ts';
import { JSON_MEMORY_PER_BYTE } from '../../src/api/requests/json-body.ts';
import { SETTINGS } from '../../src/config/table.ts';

/** Takes pieces for the project, as long as there is room; returns how much. */
function takeAll(budget: MemoryBudget, projectId: number, piece = 1): number {
  let taken = 0;
  while (budget.hasCapacity(projectId, piece, taken) && taken < 1_000) {
    budget.reserve(projectId, piece);
    taken += piece;
  }
  return taken;
}

it('gives one project seven eighths, and to others most of the rest', () => {
  const budget = new MemoryBudget(800);
  budget.reserve(1, 1);
  expect([takeAll(budget, 1), takeAll(budget, 2), takeAll(budget, 3)]).toEqual([699, 88, 11]);
});

it('gives two projects the same, once the first has given back what it had more', () => {
  const budget = new MemoryBudget(750);
  for (const projectId of [1, 2]) budget.reserve(projectId, 1);
  for (let turn = 0; turn < 750; turn += 1) {
    for (const projectId of [1, 2]) if (budget.hasCapacity(projectId, 1)) budget.reserve(projectId, 1);
  }
  expect(budget.bytesUsed).toBe(700);
});

it('has room again for what was given back', () => {
  const budget = new MemoryBudget(800);
  budget.reserve(1, 700);
  expect(budget.hasCapacity(1, 10)).toBe(false);
  budget.release(1, 100);
  expect(budget.hasCapacity(1, 80)).toBe(true);
});

it('always has room for one body, so that a limit below a message does not refuse everything for ever', () => {
  const budget = new MemoryBudget(10);
  expect(budget.hasCapacity(1, 50)).toBe(true);
  budget.reserve(1, 50);
  expect([budget.hasCapacity(1, 50, 50), budget.hasCapacity(1, 1)]).toEqual([true, false]);
});

it('has room for the largest batch by default, while others send little', () => {
  const budget = new MemoryBudget(SETTINGS.requestMemoryBytesMax.default);
  budget.reserve(2, 16 * 1024 * 1024);
  expect(budget.hasCapacity(1, SETTINGS.batchBytesMax.default * JSON_MEMORY_PER_BYTE)).toBe(true);
});
