/** Silent attempts keep connections open, of which a process may have a limited number (P10). */
import { expect, test } from 'vitest';
import { limitSilentMax } from '../../src/server/silent-max.ts';
import { openFilesMax } from '../../src/system/open-files.ts';

const SETTINGS = { silentMax: 16_384, inFlightMax: 2_048, workers: 1 };

test('as many attempts may be silent as the setting says, where there are files for them', () => {
  expect([limitSilentMax(65_536, SETTINGS), limitSilentMax(undefined, SETTINGS)]).toEqual([16_384, 16_384]);
});

test('attempts have three quarters of the open files, which the workers of a process share', () => {
  expect(limitSilentMax(20_000, SETTINGS)).toBe(15_000 - 2_048);
  expect(limitSilentMax(65_536, { ...SETTINGS, workers: 4 })).toBe(12_288 - 2_048);
});

test('with few open files, endpoints that have not answered yet have their half of the slots all the same', () => {
  expect(limitSilentMax(1_024, SETTINGS)).toBe(1_024);
});

test('the limit of open files is the soft one, and unknown where the system does not show it', () => {
  const limits =
    'Limit Soft Limit Hard Limit Units\nMax open files            20000                524288               files\n';
  expect([openFilesMax(limits), openFilesMax('')]).toEqual([20_000, undefined]);
});
