/**
 * Jobs a second, from the first that is added to the last that is done: Waypost, which does HTTP on both sides, beside
 * libraries that are in the same process as who adds and who handles, and beside webhooks that are built on these
 * libraries. Each has a database of its own. All run all the time and are loaded in turns, briefly: a machine that others
 * share is three times as fast in one minute as in the next.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from '../../test/support/postgres/cluster.ts';
import { type CpuByParty, startCpuMeter } from '../cpu.ts';
import { arrivalDelaysMs, quantile } from '../statistics.ts';
import { startDatabaseServer } from './database.ts';
import type { JobContestant, StartContestant } from './job-contestant.ts';

export interface JobsOptions {
  rounds: number;
  contestants: readonly StartContestant[];
  warmUpJobs: number;
  /** One in each call. */
  singleJobs: number;
  /** A hundred in each call. */
  batchedJobs: number;
  pacedSeconds: number;
  /** How long adding may take, and how long after the last job was added the last may be done. */
  limitMs: number;
  onRound?: (round: number, figures: Omit<JobFigures, 'round'>) => void;
}

export const DEFAULT_JOBS = {
  ...{ rounds: 5, warmUpJobs: 3_000, singleJobs: 3_000, batchedJobs: 6_000, pacedSeconds: 3, limitMs: 120_000 },
};

export interface JobFigures {
  round: number;
  contestant: string;
  work: JobContestant['work'];
  /** 64 callers, each of which adds a job and waits until it is kept. */
  singlePerSecond: number;
  /** Of all processes, adding included, for 1,000 of these jobs. */
  singleCpuMs: number;
  /** Of what it consists of. */
  singleOwnCpuMs: number;
  /** 4 callers, each of which adds a hundred and waits. */
  batchedPerSecond: number;
  batchedCpuMs: number;
  batchedOwnCpuMs: number;
  /** From add to done, at a hundred jobs a second. */
  pacedP50Ms: number;
  pacedP99Ms: number;
  /** Jobs that were not done in time, or were done again. */
  missing: number;
  repeated: number;
}

const CALLERS = 64;
const BATCH_CALLERS = 4;
const BATCH_JOBS = 100;
const PACED_PER_SECOND = 100;

/** The figures of each round and contestant. */
export async function measureJobs(options: JobsOptions): Promise<JobFigures[]> {
  const server = await startDatabaseServer();
  const contestants: JobContestant[] = [];
  try {
    for (const start of options.contestants) contestants.push(await started(start, server, options));
    const figures: JobFigures[] = [];
    for (let round = 1; round <= options.rounds; round += 1) {
      for (const contestant of contestants) {
        const measured = await measureContestant(contestant, options);
        options.onRound?.(round, measured);
        figures.push({ ...measured, round });
      }
    }
    return figures;
  } finally {
    for (const contestant of contestants) await contestant.end();
    await server.dispose();
  }
}

async function started(start: StartContestant, server: Cluster, options: JobsOptions): Promise<JobContestant> {
  const contestant = await start(server);
  try {
    await addSingly(contestant, options.warmUpJobs, options);
    await addBatched(contestant, options.warmUpJobs, options);
    await contestant.settleIn();
    return contestant;
  } catch (error) {
    await contestant.end();
    throw error;
  }
}

async function measureContestant(contestant: JobContestant, options: JobsOptions): Promise<Omit<JobFigures, 'round'>> {
  const single = await addSingly(contestant, options.singleJobs, options);
  const batched = await addBatched(contestant, options.batchedJobs, options);
  const paced = await addPaced(contestant, options);
  const loads = [single, batched, paced];
  return {
    contestant: contestant.name,
    work: contestant.work,
    singlePerSecond: single.perSecond,
    singleCpuMs: single.cpuMs,
    singleOwnCpuMs: single.ownCpuMs,
    batchedPerSecond: batched.perSecond,
    batchedCpuMs: batched.cpuMs,
    batchedOwnCpuMs: batched.ownCpuMs,
    pacedP50Ms: quantile(paced.delaysMs, 0.5),
    pacedP99Ms: quantile(paced.delaysMs, 0.99),
    missing: loads.reduce((sum, { missing }) => sum + missing, 0),
    repeated: loads.reduce((sum, { repeated }) => sum + repeated, 0),
  };
}

interface Load {
  perSecond: number;
  /** For 1,000 jobs. */
  cpuMs: number;
  ownCpuMs: number;
  delaysMs: number[];
  missing: number;
  repeated: number;
}

function addSingly(contestant: JobContestant, jobs: number, options: JobsOptions): Promise<Load> {
  return measureLoad(contestant, jobs, options, async (sentNs) => {
    let next = 0;
    const call = async () => {
      while (next < jobs) {
        const number = next++;
        sentNs[number] = process.hrtime.bigint();
        await contestant.add(bodyOf(number));
      }
    };
    await Promise.all(Array.from({ length: CALLERS }, call));
  });
}

function addBatched(contestant: JobContestant, jobs: number, options: JobsOptions): Promise<Load> {
  return measureLoad(contestant, jobs, options, async (sentNs) => {
    let next = 0;
    const call = async () => {
      while (next < jobs) {
        const first = next;
        next = Math.min(jobs, first + BATCH_JOBS);
        sentNs.fill(process.hrtime.bigint(), first, next);
        await contestant.addMany(Array.from({ length: next - first }, (_, index) => bodyOf(first + index)));
      }
    };
    await Promise.all(Array.from({ length: BATCH_CALLERS }, call));
  });
}

/** Whatever the contestant does: what cannot be added in time is added later, and its time runs. */
function addPaced(contestant: JobContestant, options: JobsOptions): Promise<Load> {
  const jobs = PACED_PER_SECOND * options.pacedSeconds;
  return measureLoad(contestant, jobs, options, async (sentNs) => {
    const startedMs = performance.now();
    const adding: Promise<void>[] = [];
    while (adding.length < jobs) {
      const due = Math.min(jobs, Math.floor(((performance.now() - startedMs) / 1_000) * PACED_PER_SECOND) + 1);
      while (adding.length < due) {
        const number = adding.length;
        sentNs[number] = process.hrtime.bigint();
        adding.push(contestant.add(bodyOf(number)));
      }
      await sleep(1);
    }
    await Promise.all(adding);
  });
}

async function measureLoad(
  contestant: JobContestant,
  jobs: number,
  { limitMs }: JobsOptions,
  add: (sentNs: BigUint64Array) => Promise<void>,
): Promise<Load> {
  const sentNs = new BigUint64Array(jobs);
  await contestant.done.expect(jobs);
  const ownCpu = startCpuMeter(contestant.parties);
  const otherCpu = startCpuMeter({ ...contestant.endpoint, 'who adds': [process.pid] });
  const startedNs = process.hrtime.bigint();
  await within(limitMs, add(sentNs), `${contestant.name} had not taken ${jobs} jobs after ${limitMs} ms`);
  await contestant.done.complete(limitMs);
  const { distinct, repeated, unexpected, lastArrivalNs, arrivalsNs } = await contestant.done.report();
  const ownCpuMs = (sum(ownCpu.read()) * 1e6) / jobs;
  return {
    perSecond: distinct / (Number(lastArrivalNs - startedNs) / 1e9),
    cpuMs: ownCpuMs + (sum(otherCpu.read()) * 1e6) / jobs,
    ownCpuMs,
    delaysMs: arrivalDelaysMs(sentNs, arrivalsNs),
    missing: jobs - distinct,
    repeated: repeated + unexpected,
  };
}

async function within(limitMs: number, work: Promise<void>, failure: string): Promise<void> {
  const over = new AbortController();
  const late = sleep(limitMs, undefined, { signal: over.signal }).then(() => {
    throw new Error(failure);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    over.abort();
    late.catch(() => undefined);
  }
}

function bodyOf(number: number): string {
  return String(number).padStart(10, '0').padEnd(200, 'x');
}

function sum(cpu: CpuByParty): number {
  return Object.values(cpu).reduce((total, seconds) => total + seconds, 0);
}
