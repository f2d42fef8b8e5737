/** The plan that balances cells: which projects it moves, and that it terminates. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  emptiestOf,
  type LoadedCell,
  type PlannedMove,
  type ProjectLoad,
  planBalance,
  sharesOf,
} from '../../src/cells/operate/balance-plan.ts';

let projectId = 0;
const project = (perMinute = 0, unfinished = 0, bytesPerDay = 0): ProjectLoad => {
  projectId += 1;
  return { projectId, perMinute, unfinished, bytesPerDay };
};
const many = (count: number, perMinute = 0): ProjectLoad[] => Array.from({ length: count }, () => project(perMinute));
const cell = (cellId: number, projects: ProjectLoad[], isDraining = false): LoadedCell => ({
  ...{ cellId, projects, isDraining },
});
const drained = (cellId: number, projects: ProjectLoad[]): LoadedCell => cell(cellId, projects, true);

/** The cells after the plan has been carried out. */
function carriedOut(cells: readonly LoadedCell[], plan: readonly PlannedMove[]): LoadedCell[] {
  const all = new Map(cells.flatMap(({ projects }) => projects.map((each) => [each.projectId, each] as const)));
  return cells.map(({ cellId, isDraining, projects }) => ({
    ...{ cellId, isDraining },
    projects: [
      ...projects.filter((each) => !plan.some((move) => move.projectId === each.projectId)),
      ...plan.flatMap((move) => (move.toCell === cellId ? (all.get(move.projectId) ?? []) : [])),
    ],
  }));
}

const sizes = (cells: readonly LoadedCell[]): number[] => cells.map(({ projects }) => projects.length);

describe('idle projects', () => {
  it('are divided by count, so that a new cell gets half of them', () => {
    const cells = [cell(1, many(10)), cell(2, [])];
    expect(sizes(carriedOut(cells, planBalance(cells)))).toEqual([5, 5]);
  });

  it('stay in place when cells have about the same load', () => {
    expect(planBalance([cell(1, many(10)), cell(2, many(11))])).toEqual([]);
  });
});

describe('a project with more load than all others together', () => {
  it('stays in its cell, and the others leave that cell', () => {
    const [huge, small] = [project(9_000, 50, 1e9), many(6, 100)];
    const cells = [cell(1, [huge, ...small]), cell(2, many(2, 100))];
    const plan = planBalance(cells);
    expect(plan.map((move) => move.projectId)).not.toContain(huge.projectId);
    expect(new Set(plan.map(({ toCell }) => toCell))).toEqual(new Set([2]));
  });

  it('is not moved if it is alone in its cell', () => {
    expect(planBalance([cell(1, [project(9_000)]), cell(2, []), cell(3, [])])).toEqual([]);
  });
});

it('about half of the difference is moved from the fullest cell to the emptiest', () => {
  const most = project(600);
  const cells = [cell(1, [most, project(300), project(150), project(100)]), cell(2, [project(50)])];
  expect(planBalance(cells)).toEqual([{ projectId: most.projectId, fromCell: 1, toCell: 2, why: 'fullest' }]);
});

describe('a draining cell', () => {
  it('loses all its projects, the largest first, and gets none', () => {
    const [large, small] = [project(100), project(1)];
    const cells = [cell(1, many(3, 50)), drained(2, [small, large]), cell(3, many(3, 40))];
    const plan = planBalance(cells);
    expect(plan.slice(0, 2)).toEqual([
      { projectId: large.projectId, fromCell: 2, toCell: 3, why: 'drains' },
      { projectId: small.projectId, fromCell: 2, toCell: 1, why: 'drains' },
    ]);
    expect(sizes(carriedOut(cells, plan))[1]).toBe(0);
  });

  it('keeps its projects while no other cell can accept them', () => {
    expect(planBalance([drained(1, many(3)), drained(2, [])])).toEqual([]);
    expect(emptiestOf([drained(1, many(3)), drained(2, [])])).toBeUndefined();
  });
});

it('a new project is placed in the cell with the least load, even if another has fewer projects', () => {
  const cells = [cell(1, many(1, 900)), cell(2, many(3, 10)), drained(3, [])];
  expect(emptiestOf(cells)).toBe(2);
});

describe('for random loads', () => {
  const load = fc.oneof(fc.constant(0), fc.nat(10), fc.nat(1_000_000_000));
  const projects = fc.array(fc.tuple(load, load, load), { maxLength: 12 });
  const anyCells = fc.array(fc.tuple(projects, fc.integer({ min: 0, max: 4 })), { maxLength: 8 }).map((all) =>
    all.map(([loads, drains], index) =>
      cell(
        index + 1,
        loads.map((each, at) => ({ ...project(...each), projectId: index * 100 + at + 1 })),
        drains === 0,
      ),
    ),
  );
  const fullestOf = (cells: readonly LoadedCell[]): number => Math.max(0, ...sharesOf(cells).values());

  it('a plan moves each project at most once, from its current cell, and never into a draining cell', () => {
    fc.assert(
      fc.property(anyCells, (cells) => {
        const plan = planBalance(cells);
        expect(new Set(plan.map((move) => move.projectId)).size).toBe(plan.length);
        for (const { projectId: id, fromCell, toCell } of plan) {
          expect(cells.find(({ cellId }) => cellId === fromCell)?.projects.some((each) => each.projectId === id)).toBe(
            true,
          );
          expect(cells.find(({ cellId }) => cellId === toCell)?.isDraining).toBe(false);
        }
      }),
    );
  });

  it('without draining cells, the maximum load does not grow and the minimum load does not shrink', () => {
    fc.assert(
      fc.property(anyCells, (any) => {
        const cells = any.map((each) => ({ ...each, isDraining: false }));
        const then = carriedOut(cells, planBalance(cells));
        expect(fullestOf(then)).toBeLessThanOrEqual(fullestOf(cells) + 1e-9);
        const leastOf = (of: LoadedCell[]) => Math.min(...sharesOf(of).values());
        expect(leastOf(then)).toBeGreaterThanOrEqual(leastOf(cells) - 1e-9);
      }),
    );
  });

  it('a second plan is empty, and every draining cell is empty if another cell accepts projects', () => {
    fc.assert(
      fc.property(anyCells, (cells) => {
        const then = carriedOut(cells, planBalance(cells));
        expect(planBalance(then)).toEqual([]);
        if (cells.every(({ isDraining }) => isDraining)) return;
        for (const { isDraining, projects: left } of then) expect(isDraining ? left : []).toEqual([]);
      }),
    );
  });

  it('the plan does not depend on the order of cells and projects', () => {
    fc.assert(
      fc.property(anyCells, (cells) => {
        const turned = cells.map((each) => ({ ...each, projects: each.projects.toReversed() })).toReversed();
        expect(planBalance(turned)).toEqual(planBalance(cells));
      }),
    );
  });
});

it('a plan for a thousand cells with ten thousand projects is ready within seconds', () => {
  const cells = Array.from({ length: 1_000 }, (_, index) => cell(index + 1, index < 500 ? many(20, index % 37) : []));
  const then = carriedOut(cells, planBalance(cells));
  expect(Math.max(...sharesOf(then).values())).toBeLessThan(1.3 / 1_000);
});
