/**
 * Estimates the throughput of machines that are not available. The cost of a message and of a batch is measured with one worker on this
 * machine. The model is validated against two and four workers, and then simulates machines with more cores, and workers with many cells.
 */
import type { Millis } from '../../src/engine/model.ts';
import { table } from '../table.ts';
import { DEFAULT_PRICE, measureWorkerPrice, type PriceFigures } from '../worker-price.ts';
import { type Costs, type Played, play, type Shape } from './model.ts';

export interface CapacityOptions {
  rounds: number;
  /** A rate in messages per second at which nearly every command has its own batch. */
  calmPerSecond: number;
  onFigures?: (figures: PriceFigures) => void;
}

export const DEFAULT_CAPACITY = { rounds: 3, calmPerSecond: 200 };

/** The number of cores of the machine that runs the benchmark. */
const CORES_HERE = 2;
const UNDER_WAY = 64;
const WORKERS_HERE = [1, 2, 4];

export interface Compared {
  name: string;
  measured: Played;
  model: Played;
}

export interface CapacityReport {
  costs: Costs;
  /** Measured figures with those of the model. */
  compared: Compared[];
  /** Simulated figures only. The load comes from other machines. */
  played: (Pick<Shape, 'cores' | 'workers' | 'cells' | 'underWay'> & { figures: Played })[];
}

export async function measureCapacity(options: CapacityOptions): Promise<CapacityReport> {
  const { rounds, calmPerSecond } = options;
  const prices = await measureWorkerPrice({
    ...DEFAULT_PRICE,
    ...{ databases: ['PostgreSQL'], workers: WORKERS_HERE, rates: [calmPerSecond, 0], rounds },
    ...(options.onFigures && { onFigures: options.onFigures }),
  });
  const costs = costsIn(prices);
  const compared: Compared[] = [];
  for (const price of prices) compared.push(await compare(price, costs));
  const played: CapacityReport['played'] = [];
  for (const shape of SHAPES) {
    played.push({ ...shape, figures: await play({ ...shape, isLoadHere: false, costs }) });
  }
  return { costs, compared, played };
}

/** The number of cores that one worker and its share of PostgreSQL keep busy. */
const CORES_OF_WORKER = 4 / 3;

const SHAPES: Omit<CapacityReport['played'][number], 'figures'>[] = [
  ...[1, 6, 12].flatMap((workers) =>
    [64, 256].map((underWay) => ({ cores: Math.ceil(workers * CORES_OF_WORKER), workers, cells: 1, underWay })),
  ),
  ...[4, 16, 64, 128].map((cells) => ({ cores: 8, workers: 1, cells, underWay: 256 })),
];

/** Solves for the costs with two measurements, a burst and a low rate: the low rate has more batches per message. */
export function costsIn(prices: readonly PriceFigures[]): Costs {
  const ofOne = prices.filter(({ workers }) => workers === 1);
  const [burst, calm] = [ofOne.find(({ perSecond }) => perSecond === 0), ofOne.find(({ perSecond }) => perSecond > 0)];
  if (!(burst && calm)) throw new Error('there is no measurement with one worker');
  const ofBatch = (name: 'waypostCpuMs' | 'postgresCpuMs') =>
    (calm[name] - burst[name]) / (calm.batches - burst.batches);
  const [workerBatch, postgresBatch] = [ofBatch('waypostCpuMs'), ofBatch('postgresCpuMs')];
  const ofMessage = (cpuMs: Millis, batchMs: Millis) => (cpuMs - batchMs * burst.batches) / 1_000;
  const workerMessage = ofMessage(burst.waypostCpuMs, workerBatch);
  const postgresMessage = ofMessage(burst.postgresCpuMs, postgresBatch);
  const knownMs = workerMessage + workerBatch + postgresBatch + postgresMessage / 2;
  return {
    ...{ workerMessage, workerBatch, postgresMessage, postgresBatch },
    loadMessage: burst.loadCpuMs / 1_000,
    commitMs: Math.max(MIN_COMMIT_MS, calm.arrivalP50Ms - knownMs),
  };
}

/** With a commit time of zero, no commit would be shared. */
const MIN_COMMIT_MS = 0.1;

async function compare(price: PriceFigures, costs: Costs): Promise<Compared> {
  const { workers, perSecond } = price;
  const load = perSecond === 0 ? { underWay: UNDER_WAY / workers } : { perSecond };
  const model = await play({ cores: CORES_HERE, workers, cells: 1, ...load, isLoadHere: true, costs });
  const measured: Played = {
    perSecond: price.deliveredPerSecond,
    workerCpuMs: price.waypostCpuMs,
    postgresCpuMs: price.postgresCpuMs,
    batches: price.batches,
    busiest: (price.waypostCpuMs * price.deliveredPerSecond) / 1e6 / workers,
    syncsPerSecond: Number.NaN,
  };
  return { name: `${workers} workers, ${perSecond === 0 ? 'a burst' : `${perSecond}/s`}`, measured, model };
}

export function capacityTable({ costs, compared, played }: CapacityReport): string {
  const beside = ({ name, measured, model }: Compared) => [
    name,
    ...(['perSecond', 'workerCpuMs', 'postgresCpuMs', 'batches'] as const).flatMap((figure) => [
      measured[figure].toFixed(0),
      model[figure].toFixed(0),
    ]),
    (model.perSecond / measured.perSecond).toFixed(2),
    ((model.workerCpuMs + model.postgresCpuMs) / (measured.workerCpuMs + measured.postgresCpuMs)).toFixed(2),
  ];
  const alone = ({ cores, workers, cells, underWay, figures }: CapacityReport['played'][number]) => [
    `${cores} cores, ${workers} workers, ${cells} cells, ${underWay} concurrent`,
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
    table('measured and model, per 1,000 messages', ['', ...pairs, 'rate ratio', 'CPU ratio'], compared.map(beside)),
    table(
      'model only, per 1,000 messages',
      ['', 'messages/s', 'worker CPU ms', 'PostgreSQL', 'batches', 'busiest', 'cores of PostgreSQL', 'syncs/s'],
      played.map(alone),
    ),
  ].join('\n\n');
}
