import { expect, test } from 'vitest';
import { AttemptInterrupter } from '../../src/engine/dispatch/attempts.ts';

test('attempts of a project are interrupted together, and those of others continue', () => {
  const ends = new AttemptInterrupter();
  const [first, second, other] = [ends.enter(1), ends.enter(1), ends.enter(2)];
  ends.interrupt(1);
  expect([first, second, other].map(({ abort }) => abort.signal.aborted)).toEqual([true, true, false]);
  ends.interrupt();
  expect(other.abort.signal.aborted).toBe(true);
});

test('nothing of a project is kept after its last attempt, and nothing is released before', () => {
  const ends = new AttemptInterrupter();
  const first = ends.enter(1);
  const second = ends.enter(1);
  ends.leave(first);
  const third = ends.enter(1);
  expect(third).toBe(second);
  ends.leave(second);
  ends.leave(third);
  expect(ends.enter(1)).not.toBe(third);
});

test('an attempt that starts after others were interrupted is not interrupted with them, nor released with the last of them', () => {
  const ends = new AttemptInterrupter();
  const ended = ends.enter(1);
  ends.interrupt(1);
  const next = ends.enter(1);
  ends.leave(ended);
  expect(next.abort.signal.aborted).toBe(false);
  ends.interrupt(1);
  expect(next.abort.signal.aborted).toBe(true);
});

test('once the time limit of the shutdown has passed, running attempts end, and so do new ones', () => {
  const ends = new AttemptInterrupter();
  const before = ends.enter(1);
  expect(ends.shutdownTimeout.aborted).toBe(false);
  ends.noteShutdownTimeout();
  expect([before, ends.enter(1), ends.enter(2)].map(({ abort }) => abort.signal.aborted)).toEqual([true, true, true]);
  expect(ends.shutdownTimeout.aborted).toBe(true);
});
