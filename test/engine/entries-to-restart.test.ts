import { describe, expect, it } from 'vitest';
import type { EntryKind } from '../../src/engine/model.ts';
import type { EntryOutline } from '../../src/engine/runs/dead/dead-run-store.ts';
import { entriesToRestart } from '../../src/engine/runs/dead/entries-to-restart.ts';

const KINDS: Record<string, EntryKind> = {
  '0': 'initial',
  s: 'step',
  h: 'step',
  hc: 'toCallback',
  p: 'plan',
  c: 'toCallback',
  f: 'fromCallback',
  w: 'wait',
  i: 'invoke',
  x: 'stepConfig',
};

/** Entries by their entry keys, in order; the key of each is its position plus 100. */
function journal(...slots: string[]): EntryOutline[] {
  return slots.map((entryKey, position) => ({
    position,
    kind: KINDS[entryKey.slice(0, 2)] ?? KINDS[entryKey.charAt(0)] ?? 'step',
    key: 100 + position,
    entryKey,
    bodyBytes: 10,
  }));
}

describe('the entries that a resumed run restarts (contract W 21.3)', () => {
  it.each<[string, string[], string[]]>([
    ['the beginning, when nothing was recorded', ['0'], ['0']],
    ['the latest result of steps in a row', ['0', 's1', 's2'], ['s2']],
    ['a result that no id names, when it is the latest', ['0', 's1', 'h1f'], ['h1f']],
    ['a configuration of the next step, when it is the latest', ['0', 's1', 'x1f'], ['x1f']],
    ['the branches of a group that have no result', ['0', 'p1', 'p2', 'p3', 's2'], ['p1', 'p3']],
    ['the last result of a group that is complete', ['0', 'p1', 'p2', 's2', 's1'], ['s1']],
    ['a call that was not answered', ['0', 's1', 'c2'], ['c2']],
    ['the answer to a call, until its result is there', ['0', 'c1', 'f101'], ['f101']],
    ['what follows a call, once its result is there', ['0', 'c1', 'f101', 's1'], ['s1']],
    ['the answer to a call of a branch, until its result is there', ['0', 'p1', 'p2', 'c1', 'f103', 's2'], ['f103']],
    ['the branch beside a call, once the result of that is there', ['0', 'p1', 'p2', 'c1', 'f103', 's1'], ['p2']],
    ['the answer to a call of no step, when nothing came after it', ['0', 'hc1', 'f101'], ['f101']],
    ['what came after the answer to a call of no step', ['0', 'hc1', 'f101', 's1'], ['s1']],
    ['a branch, and not the answer to a call of no step', ['0', 'p1', 'p2', 'hc1', 'f103', 's2'], ['p1']],
    ['what a branch has begun, and not the branch', ['0', 'p1', 'p2', 'p3', 'c1', 'w2', 'i3'], ['c1', 'w2', 'i3']],
    ['a wait without an event', ['0', 's1', 'w2'], ['w2']],
    ['what follows a wait, once there was one', ['0', 'w1', 's1'], ['s1']],
    ['an invocation without a result', ['0', 'i1'], ['i1']],
    ['a group after a group', ['0', 'p1', 'p2', 's1', 's2', 'p3', 'p4', 's4'], ['p3']],
  ])('%s', (_what, slots, expected) => {
    const entries = journal(...slots);
    const keys = entriesToRestart(entries);
    expect(entries.filter(({ key }) => keys.has(key)).map(({ entryKey }) => entryKey)).toEqual(expected);
  });

  it('finds nothing in an empty journal', () => {
    expect(entriesToRestart([]).size).toBe(0);
  });
});
