/**
 * Simulates a machine that is not available: Waypost's real engine and group commit in simulated time, on simulated cores. Each
 * operation takes its measured time. Each cell is a separate store on the same PostgreSQL.
 */

import type { Engine } from '../../src/engine/commands.ts';
import { createEngine } from '../../src/engine/create.ts';
import type { Claimed, Millis, Outcome } from '../../src/engine/model.ts';
import type { Delivery } from '../../src/engine/ports.ts';
import type { EngineSettings } from '../../src/engine/settings.ts';
import type { Driver } from '../../src/store/driver.ts';
import type { Store } from '../../src/store/store.ts';
import { openDatabase, storeOver } from '../../test/simulation/database.ts';
import { SETTINGS as OVERLOADED } from '../../test/simulation/overload.ts';
import { SeededRandom } from '../../test/support/seeded-random.ts';
import { SimulatedClock } from '../../test/support/simulated-clock.ts';
import { Cores, Disk, Thread } from './machine.ts';

/** Costs in milliseconds of CPU time, except `commitMs`, which is elapsed time. */
export interface Costs {
  /** CPU of a worker's thread per message: half for the publish, half for the attempt. */
  workerMessage: Millis;
  workerBatch: Millis;
  /** CPU of PostgreSQL. */
  postgresMessage: Millis;
  postgresBatch: Millis;
  /** CPU of the publisher and the receiver, if they share the machine. */
  loadMessage: Millis;
  /** Time from the commit of a batch until the worker is notified: the WAL sync and network round trips. */
  commitMs: Millis;
}

export interface SimulatedMachine {
  cores: number;
  workers: number;
  cells: number;
  /** Concurrent requests at each worker, each followed by the next one; ignored if there is a rate. */
  concurrent?: number;
  /** Messages per second over all workers. */
  perSecond?: number;
  /** Whether the publisher and the receiver run on the same machine. */
  isLoadLocal: boolean;
  costs: Costs;
}

export interface SimulatedFigures {
  perSecond: number;
  /** Per 1,000 messages. */
  workerCpuMs: number;
  postgresCpuMs: number;
  batches: number;
  /** Utilization of the busiest worker, from 0 to 1. */
  busiest: number;
  syncsPerSecond: number;
}

const TICK_MS = 0.001;
const WARM_UP_MS = 300;
const MEASURED_MESSAGES = 4_000;
/** The time limit of a simulation, in simulated time. */
const LIMIT_MS = 60_000;
const ORIGIN = 'https://endpoint.example';

const SETTINGS: EngineSettings = {
  ...OVERLOADED,
  ...{ inFlightMax: 1_024, inFlightPerOriginMax: 1_024, inFlightBytesMax: 100_000_000 },
};

export async function simulate(machine: SimulatedMachine): Promise<SimulatedFigures> {
  const drivers = await Promise.all(Array.from({ length: machine.cells }, () => openDatabase()));
  try {
    return await new Simulation(machine, drivers).simulate();
  } finally {
    await Promise.all(drivers.map((driver) => driver.close()));
  }
}

interface Worker {
  thread: Thread;
  /** One per cell. */
  engines: readonly Engine[];
}

class Simulation {
  readonly #clock = new SimulatedClock(undefined, TICK_MS);
  readonly #random = new SeededRandom(1);
  readonly #machine: SimulatedMachine;
  readonly #drivers: readonly Driver[];
  readonly #cores: Cores;
  readonly #disk: Disk;
  #postgresMs = 0;
  #batches = 0;
  #delivered = 0;

  constructor(machine: SimulatedMachine, drivers: readonly Driver[]) {
    this.#machine = machine;
    this.#drivers = drivers;
    this.#cores = new Cores(this.#clock, machine.cores);
    this.#disk = new Disk(this.#clock, machine.costs.commitMs);
  }

  async simulate(): Promise<SimulatedFigures> {
    const workers = await this.#start();
    for (const worker of workers) this.#load(worker, workers.length);
    await this.#clock.advanceBy(WARM_UP_MS);
    const before = this.#read(workers);
    await this.#clock.runUntil(() => this.#delivered - before.delivered >= MEASURED_MESSAGES, LIMIT_MS);
    const after = this.#read(workers);
    const messages = after.delivered - before.delivered;
    const ms = after.atMs - before.atMs;
    const ofThousand = (name: 'postgresMs' | 'batches') => ((after[name] - before[name]) * 1_000) / messages;
    const busyMs = after.busyMs.map((busy, at) => busy - (before.busyMs[at] ?? 0));
    return {
      perSecond: (messages * 1_000) / ms,
      workerCpuMs: (busyMs.reduce((sum, busy) => sum + busy, 0) * 1_000) / messages,
      postgresCpuMs: ofThousand('postgresMs'),
      batches: ofThousand('batches'),
      busiest: Math.max(...busyMs) / ms,
      syncsPerSecond: ((after.syncs - before.syncs) * 1_000) / ms,
    };
  }

  #read(workers: readonly Worker[]) {
    return {
      atMs: this.#clock.elapsedMs,
      delivered: this.#delivered,
      postgresMs: this.#postgresMs,
      batches: this.#batches,
      syncs: this.#disk.syncs,
      busyMs: workers.map(({ thread }) => thread.busyMs),
    };
  }

  async #start(): Promise<Worker[]> {
    const starting = Array.from({ length: this.#machine.workers }, async (_, nth): Promise<Worker> => {
      const thread = new Thread(this.#cores);
      const engines = this.#drivers.map((driver) => this.#engine(driver, thread, `worker ${nth}`));
      return { thread, engines: await Promise.all(engines) };
    });
    const all = Promise.all(starting);
    let isStarted = false;
    void all.then(() => {
      isStarted = true;
    });
    await this.#clock.runUntil(() => isStarted, 60_000);
    return all;
  }

  #engine(driver: Driver, thread: Thread, worker: string): Promise<Engine> {
    const quiet = () => {};
    return createEngine({
      ...{ store: this.#store(driver, thread), clock: this.#clock, randomness: this.#random, worker },
      delivery: this.#delivery(thread),
      log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
      settings: SETTINGS,
    });
  }

  /** The store of the workers. A batch first costs CPU time of the worker and of PostgreSQL, and then a disk sync. */
  #store(driver: Driver, thread: Thread): Store {
    const { workerBatch, postgresBatch, postgresMessage } = this.#machine.costs;
    return storeOver(driver, undefined, {
      around: async (commands, run) => {
        await thread.run(workerBatch);
        const postgresMs = postgresBatch + (postgresMessage / COMMANDS_OF_MESSAGE) * commands;
        this.#postgresMs += postgresMs;
        this.#batches += 1;
        await this.#cores.run(postgresMs);
        const outcome = await this.#clock.hold(run());
        await this.#disk.sync();
        return outcome;
      },
    });
  }

  #delivery(thread: Thread): Delivery {
    const { costs, isLoadLocal } = this.#machine;
    return {
      attempt: async (_claimed: Claimed): Promise<Outcome> => {
        await thread.run(costs.workerMessage / 2);
        if (isLoadLocal) await this.#cores.run(costs.loadMessage / 2);
        this.#delivered += 1;
        return { kind: 'responded', status: 200, header: {}, body: new Uint8Array() };
      },
      close: () => Promise.resolve(),
    };
  }

  #load(worker: Worker, workers: number): void {
    const { concurrent = 0, perSecond } = this.#machine;
    if (perSecond !== undefined) void this.#publishPaced(worker, perSecond / workers);
    else for (let nth = 0; nth < concurrent; nth += 1) void this.#publishContinuously(worker);
  }

  async #publishContinuously(worker: Worker): Promise<void> {
    while (true) await this.#publish(worker);
  }

  async #publishPaced(worker: Worker, perSecond: number): Promise<void> {
    while (true) {
      await this.#clock.delay((-Math.log(1 - this.#random.fraction()) * 1_000) / perSecond);
      void this.#publish(worker);
    }
  }

  async #publish({ thread, engines }: Worker): Promise<void> {
    const { costs, isLoadLocal } = this.#machine;
    if (isLoadLocal) await this.#cores.run(costs.loadMessage / 2);
    await thread.run(costs.workerMessage / 2);
    const engine = engines[Math.floor(this.#random.fraction() * engines.length)] as Engine;
    await engine.publish(PROJECT, [COMMAND]);
  }
}

/** A message takes two commands: accept and settle. */
const COMMANDS_OF_MESSAGE = 2;

const PROJECT = 1;

const COMMAND = {
  url: `${ORIGIN}/`,
  body: Buffer.alloc(200),
  options: {
    ...{ method: 'POST' as const, header: {}, explicitHeader: {} },
    settings: { dialect: 'upstash' as const, maxRetries: 0 },
  },
};
