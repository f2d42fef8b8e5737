import { describe, expect, it } from 'vitest';
import { runKillLoop } from './kill-loop.ts';

// Another number explores other moments; a failure prints the one it had.
const SEED = Number(process.env['WAYPOST_CRASH_SEED'] ?? 20_261_121);
const KILLS = Number(process.env['WAYPOST_CRASH_KILLS'] ?? 20);

describe('the real server under mixed load', () => {
  it(`P1, P2, P6, P7: loses nothing it acknowledged when it is killed ${KILLS} times (seed ${SEED})`, {
    timeout: 60_000 + KILLS * 3_000,
  }, async () => {
    const report = await runKillLoop({ kills: KILLS, seed: SEED, signal: 'SIGKILL' });
    expect(report.unsettled).toEqual([]);
    expect(report.verdict).toMatchObject({ lost: [], unexpected: [], unexplained: [], notEndedOnce: [] });
    expect(report.integrity).toEqual(['ok']);
    expect(report.exits.every((exit) => exit.signal === 'SIGKILL')).toBe(true);
    // At most what one origin may have in flight (the default of inFlightPerOriginMax) goes out again after a kill.
    expect(report.verdict.repeatedAfterCrash).toBeLessThanOrEqual(KILLS * 256);
    // A run in which little happened proves little.
    expect(report.verdict.acked).toBeGreaterThan(KILLS * 5);
    expect(report.verdict.delivered).toBeGreaterThan(KILLS * 2);
  });

  it(`drains on SIGTERM: ends with code 0, repeats nothing that was finished, loses nothing (seed ${SEED})`, {
    timeout: 60_000,
  }, async () => {
    const report = await runKillLoop({ kills: 4, seed: SEED, signal: 'SIGTERM' });
    expect(report.exits).toEqual(Array.from({ length: 4 }, () => ({ code: 0, signal: null })));
    expect(report.lastExit).toEqual({ code: 0, signal: null });
    expect(report.unsettled).toEqual([]);
    expect(report.verdict).toMatchObject({
      lost: [],
      unexpected: [],
      unexplained: [],
      notEndedOnce: [],
      repeatedAfterCrash: 0,
    });
    expect(report.integrity).toEqual(['ok']);
  });

  it('would show: a server that writes nothing to disk loses messages, and the ledger names them', {
    timeout: 60_000,
  }, async () => {
    const report = await runKillLoop({
      kills: 2,
      seed: SEED,
      signal: 'SIGKILL',
      flags: ['--memory'],
      settleLimitMs: 1_500,
    });
    expect(report.verdict.lost.length).toBeGreaterThan(0);
    expect(report.unsettled).toEqual(expect.arrayContaining(report.verdict.lost));
  });
});
