/** The attempts that an abort ends. */
import { expect, it } from 'vitest';
import { type Interruptible, Interruptions } from '../../src/delivery/interruption.ts';

/** Attempts that note their names when they are ended, and leave as real ones do. */
function attempts(names: string): {
  ended: string[];
  signal: AbortController;
  interruptions: Interruptions;
  of: Record<string, Interruptible>;
} {
  const [ended, signal, interruptions] = [[] as string[], new AbortController(), new Interruptions()];
  const of: Record<string, Interruptible> = {};
  for (const name of names) {
    const attempt = {
      groupIndex: -1,
      interrupt() {
        ended.push(name);
        interruptions.remove(signal.signal, attempt);
      },
    };
    of[name] = attempt;
    interruptions.add(signal.signal, attempt);
  }
  return { ended, signal, interruptions, of };
}

it.each([
  { gone: 'a', left: 'bcd' },
  { gone: 'd', left: 'abc' },
  { gone: 'bc', left: 'ad' },
  { gone: 'acdb', left: '' },
])('those that are under way: $left, when of abcd these have ended: $gone', ({ gone, left }) => {
  const { ended, signal, interruptions, of } = attempts('abcd');
  for (const name of gone) interruptions.remove(signal.signal, of[name] as Interruptible);
  signal.abort();
  expect(ended.toSorted().join('')).toBe(left);
});

it('none twice, and none that has left before', () => {
  const { ended, signal, interruptions, of } = attempts('ab');
  interruptions.remove(signal.signal, of['a'] as Interruptible);
  interruptions.remove(signal.signal, of['a'] as Interruptible);
  interruptions.interruptAll();
  signal.abort();
  expect(ended).toEqual(['b']);
});
