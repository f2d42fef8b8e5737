import { describe, expect, it } from 'vitest';
import type { JobContestant } from '../../bench/postgres/job-contestant.ts';
import { measureJobs } from '../../bench/postgres/jobs.ts';
import { jobsTable, workersTable } from '../../bench/postgres/report.ts';
import { drift } from '../../bench/postgres/sustained.ts';
import { startWaypostOnPostgres } from '../../bench/postgres/webhooks/contestants.ts';
import { measureWorkers } from '../../bench/postgres/workers.ts';

// Tiny counts: these tests ask whether the benchmarks count right, never how fast anything is.
describe('npm run bench -- postgres', () => {
  it('delivers every message once, and counts the work of PostgreSQL', {
    timeout: 90_000,
  }, async () => {
    const report = await measureWorkers({
      ...{ peers: 'ordinary', rounds: 1, contestants: ['null relay', 'two processes'] },
      ...{ warmUpMessages: 50, messages: 200, steadySeconds: 0.2, countedMessages: 100 },
      ...{ syncsPublishedAfterMs: 0, limitMs: 20_000 },
    });
    expect(report.figures.map(({ contestant }) => contestant)).toEqual(['null relay', 'two processes']);
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
    for (const text of ['two processes', 'PostgreSQL', 'insert into messages']) {
      expect(table).toContain(text);
    }
  });

  it('counts finished, missing and repeated jobs', { timeout: 60_000 }, async () => {
    const figures = await measureJobs({
      ...{ rounds: 1, warmUpJobs: 20, singleJobs: 130, batchedJobs: 250, pacedSeconds: 0.2, limitMs: 20_000 },
      contestants: [startWaypostOnPostgres(2), async () => lossyContestant()],
    });
    const [waypost, other] = figures;
    expect(waypost).toMatchObject({ contestant: 'Waypost on PostgreSQL, 2 processes', missing: 0, repeated: 0 });
    expect(waypost?.singlePerSecond).toBeGreaterThan(0);
    expect(waypost?.batchedPerSecond).toBeGreaterThan(0);
    expect(waypost?.pacedP50Ms).toBeGreaterThan(0);
    // Of each of the three loads, in one round.
    expect(other).toMatchObject({ contestant: 'a lossy contestant', missing: 3, repeated: 6 });
    expect(jobsTable(figures)).toContain('a lossy contestant');
  });

  it('divides the last third by the first third without the cold first interval', () => {
    expect(drift([90, 10, 10, 10, 20, 20, 20])).toBe(2);
    expect(drift([5])).toBe(1);
  });
});

/** Accepts every job at once, never finishes the last one of a load, and repeats two others. */
function lossyContestant(): JobContestant {
  let expected = 0;
  return {
    name: 'a lossy contestant',
    work: 'webhooks',
    parties: {},
    finishedJobs: {
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
    finishWarmUp: async () => undefined,
    end: async () => undefined,
  };
}
