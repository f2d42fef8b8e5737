/** Which workers serve a cell: the rule that each worker applies by itself, for any names of workers. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assignedCells, workersPerCell } from '../../src/cells/serve/cell-assignment.ts';

const cellsUpTo = (count: number) => Array.from({ length: count }, (_, index) => index + 2);
const names = (count: number) =>
  fc.uniqueArray(fc.string({ minLength: 1, maxLength: 40 }), { minLength: count, maxLength: count });

/** By worker: the cells that it serves when all workers know each other. */
function shares(cells: readonly number[], workers: readonly string[]): Map<string, Set<number>> {
  return new Map(
    workers.map((worker) => [
      worker,
      assignedCells(cells, { worker, others: workers.filter((other) => other !== worker) }),
    ]),
  );
}

describe('a worker serves', () => {
  it('all cells if there are at most 64', () => {
    const cells = cellsUpTo(64);
    for (const share of shares(cells, ['a', 'b', 'c', 'd', 'e']).values()) expect(share).toEqual(new Set(cells));
  });

  it('all cells if there are at most two workers', () => {
    const cells = cellsUpTo(1_000);
    for (const share of shares(cells, ['a', 'b']).values()) expect(share).toEqual(new Set(cells));
    expect(assignedCells(cells, { worker: 'a', others: [] })).toEqual(new Set(cells));
  });

  it('about as many of 1,000 cells as each of nineteen others, with two workers for each cell', () => {
    fc.assert(
      fc.property(names(20), (workers) => {
        const cells = cellsUpTo(1_000);
        const each = shares(cells, workers);
        const served = [...each.values()].flatMap((share) => [...share]);
        expect(workersPerCell(1_000, 20)).toBe(2);
        expect(served).toHaveLength(2 * cells.length);
        expect(new Set(served)).toEqual(new Set(cells));
        for (const share of each.values()) {
          expect(share.size).toBeGreaterThan(45);
          expect(share.size).toBeLessThan(165);
        }
      }),
      { numRuns: 20 },
    );
  });
});

it('when a worker leaves, its cells are assigned to others, and no other assignment changes', () => {
  fc.assert(
    fc.property(names(8), ([leaving = '', ...staying]) => {
      const cells = cellsUpTo(1_000);
      const before = shares(cells, [leaving, ...staying]);
      const after = shares(cells, staying);
      const count = workersPerCell(cells.length, staying.length);
      expect(workersPerCell(cells.length, staying.length + 1)).toBe(count);
      const orphans = before.get(leaving) ?? new Set<number>();
      for (const worker of staying) {
        const [had, has] = [before.get(worker) ?? new Set<number>(), after.get(worker) ?? new Set<number>()];
        expect([...had].filter((cellId) => !has.has(cellId))).toEqual([]);
        expect([...has].filter((cellId) => !(had.has(cellId) || orphans.has(cellId)))).toEqual([]);
      }
    }),
    { numRuns: 20 },
  );
});
