/** The time zone in which the command line prints times. */
import { afterEach, expect, it, vi } from 'vitest';
import { inZone, isoOf, minuteOf, timeOf } from '../../../src/cli/columns.ts';

const AT_MS = Date.UTC(2026, 0, 31, 23, 5, 9, 123);

afterEach(() => void vi.unstubAllEnvs());

it.each([
  ['UTC', '2026-01-31T23:05:09.123Z', '2026-01-31 23:05'],
  ['Australia/Eucla', '2026-02-01T07:50:09.123+08:45', '2026-02-01 07:50'],
  ['America/St_Johns', '2026-01-31T19:35:09.123-03:30', '2026-01-31 19:35'],
])('in the zone of the machine, and says so: %s', (zone, time, minute) => {
  vi.stubEnv('TZ', zone);
  expect([timeOf(AT_MS), minuteOf(AT_MS), inZone('CREATED')]).toEqual([time, minute, `CREATED (${zone})`]);
  expect(isoOf(AT_MS)).toBe('2026-01-31T23:05:09.123Z');
});
