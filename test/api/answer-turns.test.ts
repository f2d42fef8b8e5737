import { expect, it } from 'vitest';
import { AnswerTurns } from '../../src/api/answer-turns.ts';

/** Takes `sizes` in order; `begun` has those that have their turn, and `end` ends one of them. */
function taking(sizes: number[]) {
  const turns = new AnswerTurns(100);
  const ends = new Map<number, () => void>();
  for (const size of sizes) void turns.take(size).then((giveBack) => ends.set(size, giveBack));
  const end = (size: number): void => ends.get(size)?.();
  const begun = async (): Promise<number[]> => {
    await new Promise(setImmediate);
    return [...ends.keys()];
  };
  return { begun, end };
}

it('lets as many be in memory together as fit, and the others follow in order', async () => {
  const { begun, end } = taking([60, 40, 70, 20]);
  expect(await begun()).toEqual([60, 40]);
  end(40);
  expect(await begun()).toEqual([60, 40]); // 70 does not fit, and 20 came after it
  end(60);
  expect(await begun()).toEqual([60, 40, 70, 20]);
});

it('lets one that is larger than all there is be in memory alone', async () => {
  const { begun, end } = taking([10, 500, 20]);
  expect(await begun()).toEqual([10]);
  end(10);
  expect(await begun()).toEqual([10, 500]);
  end(500);
  expect(await begun()).toEqual([10, 500, 20]);
});
