/** A smoke of the kill loop; crash.full.test.ts kills more often, in other ways, and proves that a loss would be seen. */
import { expect, it } from 'vitest';
import { findingsOf, runKillLoop } from './kill-loop.ts';

const SEED = Number(process.env['WAYPOST_CRASH_SEED'] ?? 20_261_121);

it(`P1 to P7: the real server loses nothing and keeps every limit and order when it is killed under load (seed ${SEED})`, async () => {
  const report = await runKillLoop({ kills: 1, seed: SEED, signal: 'SIGKILL' });
  expect(findingsOf(report)).toEqual([]);
  expect(report.exits).toEqual([{ code: null, signal: 'SIGKILL' }]);
});
