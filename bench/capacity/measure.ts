/**
 * Estimates the throughput of machines that are not available. The cost of a message and of a batch is measured with one worker on this
 * machine. The model is validated against two and four workers, and then simulates machines with more cores, and workers with many cells.
 */
import type { Millis } from '../../src/engine/model.ts';
import { type CostFigures, DEFAULT_COST, measureMessageCost } from '../message-cost.ts';
import { table } from '../table.ts';
import { type Costs, type SimulatedFigures, type SimulatedMachine, simulate } from './model.ts';

export interface CapacityOptions {
  rounds: number;
  /** A rate in messages per second at which nearly every command has its own batch. */
  lowPerSecond: number;
  onFigures?: (figures: CostFigures) => void;
}

export const DEFAULT_CAPACITY = { rounds: 3, lowPerSecond: 200 };

/** The number of cores of the machine that runs the benchmark. */
const LOCAL_CORES = 2;
const CONCURRENT = 64;
const LOCAL_WORKERS = [1, 2, 4];

export interface ModelComparison {
  name: string;
  measured: SimulatedFigures;
  model: SimulatedFigures;
}

export interface CapacityReport {
  costs: Costs;
  /** Measured figures, with the figures of the model for the same machine. */
  comparisons: ModelComparison[];
  /** Simulated figures only. The load comes from other machines. */
  simulated: (Pick<SimulatedMachine, 'cores' | 'workers' | 'cells' | 'concurrent'> & { figures: SimulatedFigures })[];
}

export async function measureCapacity(options: CapacityOptions): Promise<CapacityReport> {
  const { rounds, lowPerSecond } = options;
  const figures = await measureMessageCost({
    ...DEFAULT_COST,
    ...{ databases: ['PostgreSQL'], workers: LOCAL_WORKERS, rates: [lowPerSecond, 0], rounds },
    ...(options.onFigures && { onFigures: options.onFigures }),
  });
  const costs = costsIn(figures);
  const comparisons: ModelComparison[] = [];
  for (const cost of figures) comparisons.push(await compare(cost, costs));
  const simulated: CapacityReport['simulated'] = [];
  for (const machine of MACHINES) {
    simulated.push({ ...machine, figures: await simulate({ ...machine, isLoadLocal: false, costs }) });
  }
  return { costs, comparisons, simulated };
}

/** The number of cores that one worker and its share of PostgreSQL keep busy. */
const CORES_OF_WORKER = 4 / 3;

const MACHINES: Omit<CapacityReport['simulated'][number], 'figures'>[] = [
  ...[1, 6, 12].flatMap((workers) =>
    [64, 256].map((concurrent) => ({ cores: Math.ceil(workers * CORES_OF_WORKER), workers, cells: 1, concurrent })),
  ),
  ...[4, 16, 64, 128].map((cells) => ({ cores: 8, workers: 1, cells, concurrent: 256 })),
];

/** Solves for the costs with two measurements, a burst and a low rate: the low rate has more batches per message. */
export function costsIn(figures: readonly CostFigures[]): Costs {
  const ofOne = figures.filter(({ workers }) => workers === 1);
  const [burst, low] = [ofOne.find(({ perSecond }) => perSecond === 0), ofOne.find(({ perSecond }) => perSecond > 0)];
  if (!(burst && low)) throw new Error('there is no measurement with one worker');
  const ofBatch = (name: 'waypostCpuMs' | 'postgresCpuMs') => (low[name] - burst[name]) / (low.batches - burst.batches);
  const [workerBatch, postgresBatch] = [ofBatch('waypostCpuMs'), ofBatch('postgresCpuMs')];
  const ofMessage = (cpuMs: Millis, batchMs: Millis) => (cpuMs - batchMs * burst.batches) / 1_000;
  const workerMessage = ofMessage(burst.waypostCpuMs, workerBatch);
  const postgresMessage = ofMessage(burst.postgresCpuMs, postgresBatch);
  const knownMs = workerMessage + workerBatch + postgresBatch + postgresMessage / 2;
  return {
    ...{ workerMessage, workerBatch, postgresMessage, postgresBatch },
    loadMessage: burst.loadCpuMs / 1_000,
    commitMs: Math.max(MIN_COMMIT_MS, low.arrivalP50Ms - knownMs),
  };
}

/** With a commit time of 0, no two messages would share a commit. */
const MIN_COMMIT_MS = 0.1;

async function compare(cost: CostFigures, costs: Costs): Promise<ModelComparison> {
  const { workers, perSecond } = cost;
  const load = perSecond === 0 ? { concurrent: CONCURRENT / workers } : { perSecond };
  const model = await simulate({ cores: LOCAL_CORES, workers, cells: 1, ...load, isLoadLocal: true, costs });
  const measured: SimulatedFigures = {
    perSecond: cost.deliveredPerSecond,
    workerCpuMs: cost.waypostCpuMs,
    postgresCpuMs: cost.postgresCpuMs,
    batches: cost.batches,
    busiest: (cost.waypostCpuMs * cost.deliveredPerSecond) / 1e6 / workers,
    syncsPerSecond: Number.NaN,
  };
  return { name: `${workers} workers, ${perSecond === 0 ? 'a burst' : `${perSecond}/s`}`, measured, model };
}

export function capacityTable({ costs, comparisons, simulated }: CapacityReport): string {
  const comparisonRow = ({ name, measured, model }: ModelComparison) => [
    name,
    ...(['perSecond', 'workerCpuMs', 'postgresCpuMs', 'batches'] as const).flatMap((figure) => [
      measured[figure].toFixed(0),
      model[figure].toFixed(0),
    ]),
    (model.perSecond / measured.perSecond).toFixed(2),
    ((model.workerCpuMs + model.postgresCpuMs) / (measured.workerCpuMs + measured.postgresCpuMs)).toFixed(2),
  ];
  const simulatedRow = ({ cores, workers, cells, concurrent, figures }: CapacityReport['simulated'][number]) => [
    `${cores} cores, ${workers} workers, ${cells} cells, ${concurrent} concurrent`,
    ...[figures.perSecond, figures.workerCpuMs, figures.postgresCpuMs, figures.batches].map((value) =>
      value.toFixed(0),
    ),
    figures.busiest.toFixed(2),
    ((figures.postgresCpuMs * figures.perSecond) / 1e6).toFixed(1),
    figures.syncsPerSecond.toFixed(0),
  ];
  const micros = Object.entries(costs).map(([name, ms]) => [name, (ms * 1_000).toFixed(0)]);
  const pairs = ['messages/s', 'worker CPU ms', 'PostgreSQL', 'batches'].flatMap((name) => [name, 'model']);
  return [
    table('costs', ['', 'µs'], micros),
    table(
      'measured and model, per 1,000 messages',
      ['', ...pairs, 'rate ratio', 'CPU ratio'],
      comparisons.map(comparisonRow),
    ),
    table(
      'model only, per 1,000 messages',
      ['', 'messages/s', 'worker CPU ms', 'PostgreSQL', 'batches', 'busiest', 'cores of PostgreSQL', 'syncs/s'],
      simulated.map(simulatedRow),
    ),
  ].join('\n\n');
}
