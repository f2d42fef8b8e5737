import { expect, test } from 'vitest';
import { LeastRecent } from '../../src/engine/least-recent.ts';

test('of too many entries the one that was read or written longest ago is removed, and only that', () => {
  const map = new LeastRecent<number>(3);
  for (const [name, value] of Object.entries({ a: 1, b: 2, c: 3 })) map.set(name, value);
  expect(map.get('missing')).toBeUndefined();
  map.set('b', 20);
  expect(map.get('a')).toBe(1);
  map.set('d', 4);
  expect(['a', 'b', 'c', 'd'].map((name) => map.get(name))).toEqual([1, 20, undefined, 4]);
  map.delete('d');
  map.set('e', 5);
  expect(['a', 'b', 'd', 'e'].map((name) => map.get(name))).toEqual([1, 20, undefined, 5]);
});
