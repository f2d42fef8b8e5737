import { describe, expect, it } from 'vitest';
import { measureClaims } from '../../bench/postgres/claims.ts';
import { type JobContestant, startWaypostJobs } from '../../bench/postgres/job-contestant.ts';
import { measureJobs } from '../../bench/postgres/jobs.ts';
import { jobsTable, sustainedSummary, workersTable } from '../../bench/postgres/report.ts';
import { drift, measureSustained } from '../../bench/postgres/sustained.ts';
import { measureWorkers } from '../../bench/postgres/workers.ts';

// Tiny counts: these tests ask whether the benchmarks count right, never how fast anything is.
describe('npm run bench -- postgres', () => {
  it('sees every message arrive, once, through one worker and through two, and counts what PostgreSQL did', {
    timeout: 90_000,
  }, async () => {
    const report = await measureWorkers({
      ...{ peers: 'ordinary', rounds: 1, contestants: ['null relay', 'one worker', 'two processes'] },
      ...{ warmUpMessages: 50, messages: 200, steadySeconds: 0.2, countedMessages: 100 },
      ...{ syncsToldAfterMs: 0, limitMs: 20_000 },
    });
    expect(report.figures.map(({ contestant }) => contestant)).toEqual(['null relay', 'one worker', 'two processes']);
    for (const { missing, repeated, perSecond, arrivalP50Ms } of report.figures) {
      expect({ missing, repeated }).toEqual({ missing: 0, repeated: 0 });
      expect(perSecond).toBeGreaterThan(0);
      expect(arrivalP50Ms).toBeGreaterThan(0);
    }
    // A message is a row, its content, three log entries, and the row's deletion.
    expect(report.work.rowsWritten).toBeGreaterThanOrEqual(600);
    expect(report.work.rowsWritten).toBeLessThan(700);
    expect(report.work.statements).toBeGreaterThan(report.work.transactions);
    expect(report.work.transactions).toBeGreaterThanOrEqual(2);
    expect(report.work.walBytes).toBeGreaterThan(100 * 200);
    const table = workersTable(report, 1);
    for (const text of ['two processes / one worker', 'PostgreSQL', 'insert into messages']) {
      expect(table).toContain(text);
    }
  });

  it('counts the jobs that were done, and those that were not, or twice', { timeout: 60_000 }, async () => {
    const figures = await measureJobs({
      ...{ rounds: 2, warmUpJobs: 20, singleJobs: 130, batchedJobs: 250, pacedSeconds: 0.2, limitMs: 20_000 },
      contestants: [startWaypostJobs, async () => loser()],
    });
    const [waypost, other] = figures;
    expect(waypost).toMatchObject({ contestant: 'Waypost on PostgreSQL', missing: 0, repeated: 0 });
    expect(waypost?.singlePerSecond).toBeGreaterThan(0);
    expect(waypost?.batchedPerSecond).toBeGreaterThan(0);
    expect(waypost?.pacedP50Ms).toBeGreaterThan(0);
    // Of each of the three loads, in both rounds.
    expect(other).toMatchObject({ contestant: 'a loser', missing: 6, repeated: 12 });
    expect(jobsTable(figures, 2)).toContain('a loser');
  });

  it('claims from among due messages, alone, with another, and beside an old snapshot', {
    timeout: 60_000,
  }, async () => {
    const figures = await measureClaims({ messages: 2_000, warmUpClaims: 1, claims: 2, limit: 128 });
    expect(figures).toHaveLength(13);
    for (const { value } of figures) expect(value).toBeGreaterThan(0);
  });

  it('looks at the tables while messages flow', { timeout: 60_000 }, async () => {
    const report = await measureSustained({ minutes: 0.02, pieceSeconds: 0.6, perSecond: 300 });
    expect(report.pieces).toHaveLength(2);
    for (const { missing, repeated, tables } of report.pieces) {
      expect({ missing, repeated }).toEqual({ missing: 0, repeated: 0 });
      expect(tables.map(({ name }) => name)).toEqual(expect.arrayContaining(['messages', 'contents', 'logs']));
    }
    expect(sustainedSummary(report)).toContain('p99 of the last third');
  });

  it('takes the drift from the end against the begin, the cold first piece left out', () => {
    expect(drift([90, 10, 10, 10, 20, 20, 20])).toBe(2);
    expect(drift([5])).toBe(1);
  });
});

/** Says at once that a job is kept; never does the last one of a load, and does others of them twice. */
function loser(): JobContestant {
  let expected = 0;
  return {
    name: 'a loser',
    parties: {},
    done: {
      pid: process.pid,
      async expect(jobs) {
        expected = jobs;
      },
      complete: async () => false,
      async report() {
        const lastArrivalNs = process.hrtime.bigint();
        return {
          ...{ distinct: expected - 1, repeated: 2, unexpected: 0, lastArrivalNs },
          arrivalsNs: new BigUint64Array(expected).fill(lastArrivalNs, 0, expected - 1),
        };
      },
      end: async () => undefined,
    },
    add: async () => undefined,
    addMany: async () => undefined,
    settleIn: async () => undefined,
    end: async () => undefined,
  };
}
