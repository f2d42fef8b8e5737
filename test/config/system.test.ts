import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createSystemRandomness, systemClock } from '../../src/system/system.ts';

describe('the real randomness', () => {
  it('gives as many bytes as asked for, never the same ones again', () => {
    const randomness = createSystemRandomness();
    const seen = new Set<string>();
    for (let round = 0; round < 2000; round++) {
      const bytes = randomness.bytes(16);
      expect(bytes).toHaveLength(16);
      seen.add(Buffer.from(bytes).toString('hex'));
    }
    expect(seen.size).toBe(2000);
    expect(randomness.bytes(100_000)).toHaveLength(100_000);
  });

  it('does not change what it gave out when its pool is filled anew', () => {
    const randomness = createSystemRandomness();
    const first = randomness.bytes(32);
    const copy = Buffer.from(first).toString('hex');
    for (let round = 0; round < 1000; round++) randomness.bytes(32);
    expect(Buffer.from(first).toString('hex')).toBe(copy);
  });
});

describe('the real clock', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('keeps a timer of a year, which Node alone would end at once', () => {
    const yearMs = 365 * 86_400_000;
    const task = vi.fn();
    systemClock.startTimer(yearMs, task);
    vi.advanceTimersByTime(yearMs - 1);
    expect(task).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(task).toHaveBeenCalledOnce();
  });

  it('cancels a timer of a year after half of it', () => {
    const yearMs = 365 * 86_400_000;
    const task = vi.fn();
    const timer = systemClock.startTimer(yearMs, task);
    vi.advanceTimersByTime(yearMs / 2);
    timer.cancel();
    vi.advanceTimersByTime(yearMs);
    expect(task).not.toHaveBeenCalled();
  });
});
