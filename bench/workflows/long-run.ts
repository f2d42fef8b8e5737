/**
 * Measures one run with many steps. Each delivery has the journal so far, so the total size grows with the
 * square of the number of steps. Above a limit the body is empty, and the endpoint fetches the journal instead.
 */
import { request } from 'undici';
import { cpuSeconds } from '../child-process.ts';
import type { Figure } from '../figure.ts';
import { quantile } from '../statistics.ts';
import { DEVELOPMENT_TOKEN } from '../waypost-process.ts';
import { runIdOf } from './program.ts';
import { LIBRARY_NAMES, resultOf, triggerHeaders, type WorkflowSetup, waitForRuns, withSetup } from './waypost-runs.ts';

/** One run for each element: the number of steps, and the length of each result in characters. */
export type LongRunOptions = readonly { steps: number; resultLength: number }[];

/** The second run exceeds the limit of the body after about half of the steps. */
export const DEFAULT_LONG_RUN: LongRunOptions = [
  { steps: 500, resultLength: 10 },
  { steps: 100, resultLength: 50_000 },
];

const LIMIT_MS = 600_000;
/** Code that has run only a few hundred times is still interpreted, and several times slower. */
const WARM_UP_RUNS = 20;
const WARM_UP_STEPS = 100;

/** Uses the official library, or ours. */
export function measureLongRuns(
  library: 'library' | 'own',
  runs: LongRunOptions,
  warmUpRuns = WARM_UP_RUNS,
): Promise<Figure[]> {
  return withSetup(library, async (setup) => {
    await warmUp(setup, warmUpRuns);
    const figures: Figure[] = [];
    for (const [index, run] of runs.entries())
      figures.push(...(await measureOne(setup, { ...run, number: index + 1 })));
    return figures.map((figure) => ({ ...figure, name: `${LIBRARY_NAMES[library]}: ${figure.name}` }));
  });
}

/**
 * Measures the time from the start of a step to the start of the next one, with an otherwise idle server and steps that
 * take no time.
 */
export function measureGaps(library: 'library' | 'own', steps = 300, warmUpRuns = WARM_UP_RUNS): Promise<Figure[]> {
  return withSetup(library, async (setup) => {
    await warmUp(setup, warmUpRuns);
    await execute(setup, { number: 1, steps, resultLength: 0 }, 'starts');
    const text = await resultOf(setup.server, 1);
    const { startsMs } = JSON.parse(text ?? '{}') as { startsMs: number[] };
    if (startsMs?.length !== steps) throw new Error(`the run returned ${text}`);
    const gapsMs = startsMs.slice(1).map((ms, index) => ms - (startsMs[index] ?? 0));
    const name = `${LIBRARY_NAMES[library]}: between two steps`;
    return [
      { name: `${name}, p50`, value: quantile(gapsMs, 0.5), unit: 'ms' },
      { name: `${name}, p99`, value: quantile(gapsMs, 0.99), unit: 'ms' },
    ];
  });
}

async function warmUp(setup: WorkflowSetup, runs: number): Promise<void> {
  for (let run = 1; run <= runs; run += 1) {
    await execute(setup, { number: -run, steps: WARM_UP_STEPS, resultLength: 10 });
  }
}

interface LongRun {
  number: number;
  steps: number;
  resultLength: number;
}

async function measureOne(setup: WorkflowSetup, run: LongRun): Promise<Figure[]> {
  const { server, endpoint } = setup;
  const before = await endpoint.traffic();
  const cpu = [cpuSeconds(server.pid), cpuSeconds(endpoint.pid)] as const;
  const startedAt = performance.now();
  await execute(setup, run);
  const ms = performance.now() - startedAt;
  const serverCpuMs = (cpuSeconds(server.pid) - cpu[0]) * 1_000;
  const endpointCpuMs = (cpuSeconds(endpoint.pid) - cpu[1]) * 1_000;
  const { bytes, bodyBytes } = await endpoint.traffic();
  const delivered = bodyBytes.slice(before.bodyBytes.length);
  const name = `${run.steps} steps with results of ${run.resultLength} characters`;
  const total = delivered.reduce((sum, each) => sum + each, 0);
  return [
    { name: `${name}: time per step`, value: ms / run.steps, unit: 'ms' },
    { name: `${name}: server CPU per step`, value: serverCpuMs / run.steps, unit: 'ms' },
    { name: `${name}: endpoint CPU per step`, value: endpointCpuMs / run.steps, unit: 'ms' },
    { name: `${name}: largest delivered body`, value: Math.max(...delivered) / 1_024, unit: 'KiB' },
    { name: `${name}: delivered bodies per step`, value: total / 1_024 / run.steps, unit: 'KiB' },
    {
      name: `${name}: deliveries with an empty body`,
      value: delivered.filter((each) => each === 0).length,
      unit: 'messages',
    },
    { name: `${name}: endpoint traffic per step`, value: (bytes - before.bytes) / 1_024 / run.steps, unit: 'KiB' },
    { name: `${name}: endpoint traffic`, value: (bytes - before.bytes) / 1_024 / 1_024, unit: 'MiB' },
  ];
}

/** Triggers a run and waits for its end. */
async function execute({ server, endpoint }: WorkflowSetup, run: LongRun, path = 'many'): Promise<void> {
  const url = `${endpoint.url}/${path}`;
  const ended = waitForRuns(endpoint, 1, LIMIT_MS);
  const response = await request(`${server.url}/v2/publish/${url}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${DEVELOPMENT_TOKEN}`, ...triggerHeaders(runIdOf(run.number), url) },
    body: JSON.stringify(run),
  });
  const text = await response.body.text();
  if (response.statusCode > 299) throw new Error(`trigger rejected: ${response.statusCode} ${text}`);
  if (!(await ended)) throw new Error(`a run of ${run.steps} steps has not ended`);
}
