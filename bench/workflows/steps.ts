/**
 * Measures steps per second of a program of three steps: Waypost with the official library and with a bare endpoint,
 * compared with a reference, in alternating rounds. Each contestant has its own server and endpoint, and a warm-up. There
 * are two loads: 64 concurrent runs, where each end starts the next run, and all runs started at once.
 */
import { cpuSeconds } from '../child-process.ts';
import { median } from '../statistics.ts';
import type { Contestant } from './contestant.ts';
import { STEPS } from './program.ts';

export interface StepsOptions {
  rounds: number;
  warmUpRuns: number;
  /** Runs per load. */
  runs: number;
  /** Maximum time without the end of a run. */
  stallMs: number;
  contestants: readonly (() => Promise<Contestant>)[];
  onLoad?: (figures: StepFigures, round: number) => void;
}

export const DEFAULT_STEPS = { rounds: 3, warmUpRuns: 1_000, runs: 3_000, stallMs: 60_000 };

export type Load = '64 concurrent' | 'a burst';

export interface StepFigures {
  contestant: string;
  load: Load;
  runsPerSecond: number;
  stepsPerSecond: number;
  /** User and system time of all threads. */
  serverCpuMsPerStep: number;
  endpointCpuMsPerStep: number;
  /** Over all sockets of the endpoint, in both directions, headers included. */
  bytesPerStep: number;
  /** Calls of the endpoint by the server; 0 if they are not counted. */
  callsPerRun: number;
}

const CONCURRENT_RUNS = 64;

/** Returns medians of the rounds. Throws if a run does not end as expected. */
export async function measureSteps(options: StepsOptions): Promise<StepFigures[]> {
  const figures: StepFigures[] = [];
  for (let round = 1; round <= options.rounds; round += 1) {
    for (const start of options.contestants) {
      for (const measured of await measureOne(await start(), options)) {
        figures.push(measured);
        options.onLoad?.(measured, round);
      }
    }
  }
  const groups = Map.groupBy(figures, ({ contestant, load }) => `${contestant}, ${load}`);
  return [...groups.values()].flatMap(medians);
}

async function measureOne(contestant: Contestant, options: StepsOptions): Promise<StepFigures[]> {
  try {
    let next = 0;
    const take = (count: number) => Array.from({ length: count }, () => next++);
    const repeated: number[] = [];
    const execution = { contestant, repeated, stallMs: options.stallMs };
    await execute(execution, take(options.warmUpRuns), CONCURRENT_RUNS);
    const concurrent = await measureLoad(execution, '64 concurrent', take(options.runs));
    const burst = await measureLoad(execution, 'a burst', take(options.runs));
    await contestant.verify(Array.from({ length: next }, (_, number) => number));
    if (repeated.length > 0) throw new Error(`run ${repeated[0]} ended twice`);
    return [concurrent, burst];
  } finally {
    await contestant.end();
  }
}

interface Execution {
  contestant: Contestant;
  /** Runs that ended again, or were never started. */
  repeated: number[];
  stallMs: number;
}

async function measureLoad(execution: Execution, load: Load, numbers: number[]): Promise<StepFigures> {
  const { contestant } = execution;
  const steps = numbers.length * STEPS.length;
  const before = await contestant.traffic();
  const serverCpu = cpuSeconds(contestant.serverPid);
  const endpointCpu = cpuSeconds(contestant.endpointPid);
  const seconds = await execute(execution, numbers, load === 'a burst' ? numbers.length : CONCURRENT_RUNS);
  const after = await contestant.traffic();
  return {
    contestant: contestant.name,
    load,
    runsPerSecond: numbers.length / seconds,
    stepsPerSecond: steps / seconds,
    serverCpuMsPerStep: ((cpuSeconds(contestant.serverPid) - serverCpu) * 1_000) / steps,
    endpointCpuMsPerStep: ((cpuSeconds(contestant.endpointPid) - endpointCpu) * 1_000) / steps,
    bytesPerStep: (after.bytes - before.bytes) / steps,
    callsPerRun: (after.bodyBytes.length - before.bodyBytes.length) / numbers.length,
  };
}

/** Seconds from the first start to the last end, with at most `concurrency` concurrent runs. */
async function execute(
  { contestant, repeated, stallMs }: Execution,
  numbers: readonly number[],
  concurrency: number,
): Promise<number> {
  const startedAt = performance.now();
  const missing = new Set(numbers);
  const waiting = numbers.values();
  let watch: NodeJS.Timeout | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      let latestEndAt = startedAt;
      watch = setInterval(() => {
        if (performance.now() - latestEndAt > stallMs) reject(new Error(`${missing.size} runs have not ended`));
      }, 1_000);
      const startNext = () => {
        const { value, done } = waiting.next();
        if (!done) contestant.start(value).catch(reject);
      };
      contestant.listen((number) => {
        if (!missing.delete(number)) {
          repeated.push(number);
          return;
        }
        latestEndAt = performance.now();
        if (missing.size === 0) resolve();
        else startNext();
      });
      for (let i = 0; i < Math.min(concurrency, numbers.length); i += 1) startNext();
    });
  } finally {
    clearInterval(watch);
  }
  return (performance.now() - startedAt) / 1_000;
}

function medians(figures: StepFigures[]): StepFigures[] {
  const [first] = figures;
  if (!first) return [];
  const of = (read: (each: StepFigures) => number) => median(figures.map(read));
  return [
    {
      ...first,
      runsPerSecond: of((each) => each.runsPerSecond),
      stepsPerSecond: of((each) => each.stepsPerSecond),
      serverCpuMsPerStep: of((each) => each.serverCpuMsPerStep),
      endpointCpuMsPerStep: of((each) => each.endpointCpuMsPerStep),
      bytesPerStep: of((each) => each.bytesPerStep),
      callsPerRun: of((each) => each.callsPerRun),
    },
  ];
}
