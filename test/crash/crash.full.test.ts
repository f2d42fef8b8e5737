import { describe, expect, it } from 'vitest';
import { findingsOf, runKillLoop } from './kill-loop.ts';

// Another seed tests other moments. A failure prints its seed.
const SEED = Number(process.env['WAYPOST_CRASH_SEED'] ?? 20_261_121);
const KILLS = Number(process.env['WAYPOST_CRASH_KILLS'] ?? 3);

// Concurrent, because each test mostly waits for a start or for the periods of a rate.
describe.concurrent('the real server under mixed load', () => {
  it(`P1 to P7: loses nothing and keeps every limit and order when it is killed ${KILLS} times (seed ${SEED})`, {
    timeout: 60_000 + KILLS * 5_000,
  }, async () => {
    const report = await runKillLoop({ kills: KILLS, seed: SEED, signal: 'SIGKILL' });
    expect(findingsOf(report)).toEqual([]);
    expect(report.integrity).toEqual(['ok']);
    expect(report.exits.every((exit) => exit.signal === 'SIGKILL')).toBe(true);
    // A kill repeats at most the attempts in flight to one origin (the default of inFlightPerOriginMax).
    expect(report.repeatedAfterCrash).toBeLessThanOrEqual(KILLS * 256);
  });

  it(`drains on SIGTERM: exits with code 0, repeats no finished attempt, loses nothing (seed ${SEED})`, {
    timeout: 90_000,
  }, async () => {
    const report = await runKillLoop({ kills: 1, seed: SEED, signal: 'SIGTERM' });
    expect(report.exits).toEqual([{ code: 0, signal: null }]);
    expect(report.lastExit).toEqual({ code: 0, signal: null });
    expect(findingsOf(report)).toEqual([]);
    expect(report.repeatedAfterCrash).toBe(0);
    expect(report.integrity).toEqual(['ok']);
  });

  it(`P1 to P7: loses nothing and keeps every limit and order with two workers in one process (seed ${SEED})`, {
    timeout: 60_000 + KILLS * 5_000,
  }, async () => {
    const kills = Math.ceil(KILLS / 4);
    const report = await runKillLoop({ kills, seed: SEED, signal: 'SIGKILL', flags: ['--workers', '2'] });
    expect(findingsOf(report)).toEqual([]);
    expect(report.exits.every((exit) => exit.signal === 'SIGKILL')).toBe(true);
    expect(report.lastExit).toEqual({ code: 0, signal: null });
  });

  it('control: the ledger names the messages that a server without persistence loses', {
    timeout: 60_000,
  }, async () => {
    const report = await runKillLoop({
      kills: 1,
      seed: SEED,
      signal: 'SIGKILL',
      life: { min: 100, max: 150 },
      flags: ['--memory'],
      settleLimitMs: 1_500,
    });
    expect(report.broken['P1 lost'].length).toBeGreaterThan(0);
    expect(report.unsettled).toEqual(expect.arrayContaining(report.broken['P1 lost']));
  });
});
