/**
 * Measures jobs per second, from the first that is added to the last that is finished: Waypost, with HTTP on both sides,
 * compared with libraries that run in the process that adds and the process that handles the jobs, and with webhooks
 * built on these libraries. Each contestant has its own database. All contestants run throughout and are loaded briefly
 * one after the other, since the speed of a shared machine can change by a factor of three within a minute.
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
  /** Jobs that are added with one call each. */
  singleJobs: number;
  /** Jobs that are added a hundred per call. */
  batchedJobs: number;
  pacedSeconds: number;
  /** Time limit for adding all jobs, and again for finishing all jobs after the last one was added. */
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
  /** 64 callers, each of which adds a job and waits until it is stored. */
  singlePerSecond: number;
  /** CPU time of all processes per 1,000 of these jobs, including the process that adds the jobs. */
  singleCpuMs: number;
  /** CPU time of the contestant's own processes. */
  singleOwnCpuMs: number;
  /** 4 callers, each of which adds a hundred jobs and waits. */
  batchedPerSecond: number;
  batchedCpuMs: number;
  batchedOwnCpuMs: number;
  /** From adding to finishing, at a hundred jobs per second. */
  pacedP50Ms: number;
  pacedP99Ms: number;
  /** Jobs that were not finished in time, or were repeated. */
  missing: number;
  repeated: number;
}

const CALLERS = 64;
const BATCH_CALLERS = 4;
const BATCH_JOBS = 100;
const PACED_PER_SECOND = 100;

/** Returns the figures of each round and contestant. */
export async function measureJobs(options: JobsOptions): Promise<JobFigures[]> {
  const server = await startDatabaseServer();
  const contestants: JobContestant[] = [];
  try {
    for (const start of options.contestants) contestants.push(await startWarm(start, server, options));
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

async function startWarm(start: StartContestant, server: Cluster, options: JobsOptions): Promise<JobContestant> {
  const contestant = await start(server);
  try {
    await addSingly(contestant, options.warmUpJobs, options);
    await addBatched(contestant, options.warmUpJobs, options);
    await contestant.finishWarmUp();
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
  /** Per 1,000 jobs. */
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

/** Adds jobs at a fixed rate. A job that cannot be added in time is added later, and its latency includes the wait. */
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
  await contestant.finishedJobs.expect(jobs);
  const ownCpu = startCpuMeter(contestant.parties);
  const otherCpu = startCpuMeter({ ...contestant.endpoint, adder: [process.pid] });
  const startedNs = process.hrtime.bigint();
  await withTimeLimit(limitMs, add(sentNs), `${contestant.name} had not accepted ${jobs} jobs after ${limitMs} ms`);
  await contestant.finishedJobs.complete(limitMs);
  const { distinct, repeated, unexpected, lastArrivalNs, arrivalsNs } = await contestant.finishedJobs.report();
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

async function withTimeLimit(limitMs: number, work: Promise<void>, failure: string): Promise<void> {
  const finished = new AbortController();
  const late = sleep(limitMs, undefined, { signal: finished.signal }).then(() => {
    throw new Error(failure);
  });
  try {
    await Promise.race([work, late]);
  } finally {
    finished.abort();
    late.catch(() => undefined);
  }
}

function bodyOf(number: number): string {
  return String(number).padStart(10, '0').padEnd(200, 'x');
}

function sum(cpu: CpuByParty): number {
  return Object.values(cpu).reduce((total, seconds) => total + seconds, 0);
}
