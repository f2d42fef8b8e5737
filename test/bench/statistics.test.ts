import { describe, expect, it } from 'vitest';
import { arrivalDelaysMs, median, quantile } from '../../bench/statistics.ts';

describe('statistics of the reports', () => {
  it('computes quantiles by the nearest rank', () => {
    const hundred = Array.from({ length: 100 }, (_, i) => 100 - i);
    expect(quantile(hundred, 0.5)).toBe(50);
    expect(quantile(hundred, 0.99)).toBe(99);
    expect(quantile([7], 0.99)).toBe(7);
    expect(quantile([], 0.5)).toBeNaN();
  });

  it('computes the median of odd and even numbers of values', () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 3, 2])).toBe(2.5);
  });

  it('omits messages that never arrived from the delays', () => {
    const sent = BigUint64Array.of(1_000_000n, 2_000_000n, 3_000_000n);
    const arrived = BigUint64Array.of(1_500_000n, 0n, 5_000_000n);
    expect(arrivalDelaysMs(sent, arrived)).toEqual([0.5, 2]);
  });
});
