import { beforeEach, describe, expect, it, vi } from 'vitest';
import { findingsOf, runRunKillLoop } from './run-kill-loop.ts';

// Another number explores other moments; a failure prints the one it had.
const SEED = Number(process.env['WAYPOST_CRASH_SEED'] ?? 20_261_121);
const KILLS = Number(process.env['WAYPOST_CRASH_KILLS'] ?? 2);

describe.concurrent('runs in progress', () => {
  // The client library tells of each connection that a kill has cut.
  beforeEach(() => void vi.spyOn(console, 'error').mockReturnValue());

  it(`P7, P8: come to the right end, each step recorded once, when server and app are killed ${KILLS} times (seed ${SEED})`, {
    timeout: 90_000 + KILLS * 5_000,
  }, async () => {
    const report = await runRunKillLoop({ kills: KILLS, seed: SEED });
    expect(findingsOf(report)).toEqual([]);
    expect(report.killed.server).toBeGreaterThanOrEqual(KILLS / 2);
    expect(report.killed.app).toBeGreaterThanOrEqual(Math.floor(KILLS / 2));
    expect(report.journals.repeatedAfterCrash).toBeGreaterThan(0);
    expect(report.integrity).toEqual(['ok']);
    // Both libraries have served the runs, also one and the same.
    expect(report.checkpoints.kept).toBeGreaterThan(0);
    expect(report.checkpoints.takeovers).toBeGreaterThan(0);
  });

  it('would be missed: a server that writes nothing to disk loses them', { timeout: 60_000 }, async () => {
    const report = await runRunKillLoop({ kills: 1, seed: SEED, flags: ['--memory'] });
    expect(report.runs.lost.length).toBeGreaterThan(0);
    expect(report.checkpoints.gone.length).toBeGreaterThan(0);
  });
});
