import { describe, expect, it } from 'vitest';
import { findingsOf, runKillLoop } from './kill-loop.ts';

// Another number explores other moments; a failure prints the one it had.
const SEED = Number(process.env['WAYPOST_CRASH_SEED'] ?? 20_261_121);
const KILLS = Number(process.env['WAYPOST_CRASH_KILLS'] ?? 3);

// At a time: much of what each does is waiting, for a start or for the periods of a rate.
describe.concurrent('the real server under mixed load', () => {
  it(`P1 to P7: loses nothing and keeps every limit and order when it is killed ${KILLS} times (seed ${SEED})`, {
    timeout: 60_000 + KILLS * 5_000,
  }, async () => {
    const report = await runKillLoop({ kills: KILLS, seed: SEED, signal: 'SIGKILL' });
    expect(findingsOf(report)).toEqual([]);
    expect(report.integrity).toEqual(['ok']);
    expect(report.exits.every((exit) => exit.signal === 'SIGKILL')).toBe(true);
    // At most what one origin may have in flight (the default of inFlightPerOriginMax) goes out again after a kill.
    expect(report.repeatedAfterCrash).toBeLessThanOrEqual(KILLS * 256);
  });

  it(`drains on SIGTERM: ends with code 0, repeats nothing that was finished, loses nothing (seed ${SEED})`, {
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

  it('would show: a server that writes nothing to disk loses messages, and the ledger names them', {
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
