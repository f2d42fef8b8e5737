import { beforeEach, describe, expect, it, vi } from 'vitest';
import { findingsOf, runRunKillLoop } from './run-kill-loop.ts';

// Another seed tests other moments. A failure prints its seed.
const SEED = Number(process.env['WAYPOST_CRASH_SEED'] ?? 20_261_121);
const KILLS = Number(process.env['WAYPOST_CRASH_KILLS'] ?? 2);

describe.concurrent('runs in progress', () => {
  // The client library logs each connection that a kill has closed.
  beforeEach(() => void vi.spyOn(console, 'error').mockReturnValue());

  it(`P7, P8: end with the right result, each step recorded once, when server and app are killed ${KILLS} times (seed ${SEED})`, {
    timeout: 90_000 + KILLS * 5_000,
  }, async () => {
    const report = await runRunKillLoop({ kills: KILLS, seed: SEED });
    expect(findingsOf(report)).toEqual([]);
    expect(report.killed.server).toBeGreaterThanOrEqual(KILLS / 2);
    expect(report.killed.app).toBeGreaterThanOrEqual(Math.floor(KILLS / 2));
    expect(report.journals.repeatedAfterCrash).toBeGreaterThan(0);
    expect(report.integrity).toEqual(['ok']);
    // Both libraries have served runs, including parts of the same run.
    expect(report.checkpoints.kept).toBeGreaterThan(0);
    expect(report.checkpoints.takeovers).toBeGreaterThan(0);
  });

  it('control: the checks report the runs that a server without persistence loses', { timeout: 60_000 }, async () => {
    const report = await runRunKillLoop({ kills: 1, seed: SEED, flags: ['--memory'] });
    expect(report.runs.lost.length).toBeGreaterThan(0);
    expect(report.checkpoints.gone.length).toBeGreaterThan(0);
  });
});
