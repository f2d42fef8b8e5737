import { expect, test } from 'vitest';
import { nearest } from '../../src/config/nearest.ts';

const NAMES = ['port', 'host', 'data-dir', 'database-url', 'memory', 'backup', 'to'];

test.each([
  ['swapped with its neighbour', 'prot', 'port'],
  ['left out', 'mmory', 'memory'],
  ['added', 'hoost', 'host'],
  ['mistaken', 'backuo', 'backup'],
  ['mistaken in a short name', 'tp', 'to'],
])('a letter %s is forgiven', (_, given, meant) => {
  expect(nearest(given, NAMES)).toBe(meant);
});

test('a slip for each three letters is forgiven, and no more', () => {
  expect(nearest('bkup', NAMES)).toBeUndefined();
  expect(nearest('bckupp', NAMES)).toBe('backup');
  expect(nearest('databse-ulr', NAMES)).toBe('database-url');
  expect(nearest('colour', NAMES)).toBeUndefined();
});

test('the nearest is answered, and of those as near the first', () => {
  expect(nearest('pots', ['host', 'post', 'posts', 'pot'])).toBe('post');
  expect(nearest('pos', ['post', 'pot'])).toBe('post');
});

test('nothing is near where there is nothing', () => {
  expect(nearest('port', [])).toBeUndefined();
  expect(nearest('', NAMES)).toBeUndefined();
});
