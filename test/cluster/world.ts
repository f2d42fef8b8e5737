/**
 * Several real servers on one real PostgreSQL under mixed load, with a ledger outside, to find which faults lose nothing. A
 * fault occurs while the load continues (faults.ts). Then the load stops, and the result is checked.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { type Endpoints, openEndpoints } from '../crash/endpoints.ts';
import { fullLanes, more, type Need, untilEnough } from '../crash/enough.ts';
import { LANES, LaneLoad } from '../crash/lane-load.ts';
import { Ledger } from '../crash/ledger.ts';
import { type Load, prepareMixedLoad, runMixedLoad } from '../crash/mixed-load.ts';
import type { Cluster, Row } from '../support/postgres/cluster.ts';
import type { Pooler } from '../support/postgres/pooler.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { BalancedClient } from './balanced-client.ts';
import { Pace, type Recovery } from './pace.ts';
import { RepeatLoad } from './repeat-load.ts';
import { ScheduleWatch } from './schedule-watch.ts';
import { Workers } from './workers.ts';

export interface WorldOptions {
  seed: number;
  /** Whoever started it ends it. */
  cluster: Cluster;
  /** How many servers; default 3. */
  workers?: number;
  /** Of each worker, by turns; the first is also that of whoever asks past them. Default: a new database of `cluster`. */
  databaseUrls?: readonly [string, ...string[]];
  /** What the servers reach `cluster` through, but for listening. Whoever started it ends it. */
  pooler?: Pooler;
  /** Default: one that knows of no positions. */
  ledger?: Ledger;
}

/** Short, so that a test need not wait long for the heirs of a dead worker; longer than a busy machine stops for. */
export const WORKER_TIMEOUT_MS = 6_000;
/** Of a statement, and of the making of a connection. */
const DATABASE_TIMEOUT_MS = 2_000;

/** Operations of the mixed load under way at a time. */
const LOAD_WORKERS = 6;
/** So that a fault that takes its time finds load all along, and leaves no mountain of logs to be read in the end. */
const PAUSE_MS = 80;
/** Lanes are paused half of the time, and must keep up nevertheless. */
const LANES_SLOWNESS = 16;
/** While something is broken, what arrived in one moment may arrive again in a later one. */
const MOMENT_MS = 20;
/** Moments after a pause in which what was claimed before it may still arrive. */
export const ON_ITS_WAY = 100;
/** Things done that show that the load is under way; so many that every part of it has had a turn. */
const SOME = 40;
/** Answers of a worker that show that it works again. */
const A_FEW = 5;

export interface Recovered {
  perSecond: number;
  tookMs: number;
}

export class World {
  readonly workers: Workers;
  readonly random: SeededRandom;
  readonly client: BalancedClient;
  readonly ledger: Ledger;
  readonly repeats: RepeatLoad;
  readonly schedules: ScheduleWatch;
  readonly pace: Pace;
  /** Between the servers and the database, if there is one. */
  readonly pooler: Pooler | undefined;
  /** What the servers keep beside their database. */
  readonly dataDir: string;
  readonly #endpoints: Endpoints;
  readonly #load: Load;
  readonly #lanes: LaneLoad;
  readonly #close: () => Promise<void>;
  #cluster: Cluster;
  #databaseUrl: string;
  readonly #stop = new AbortController();
  #running: Promise<unknown> = Promise.resolve();
  #failure: unknown;

  constructor(parts: {
    cluster: Cluster;
    databaseUrl: string;
    workers: Workers;
    random: SeededRandom;
    ledger: Ledger;
    endpoints: Endpoints;
    pooler: Pooler | undefined;
    dataDir: string;
    close: () => Promise<void>;
  }) {
    const { cluster, databaseUrl, workers, random, ledger, endpoints, pooler, dataDir, close } = parts;
    this.#cluster = cluster;
    this.#databaseUrl = databaseUrl;
    this.workers = workers;
    this.random = random;
    this.ledger = ledger;
    this.pooler = pooler;
    this.dataDir = dataDir;
    this.#endpoints = endpoints;
    this.#close = close;
    this.client = new BalancedClient(workers, random);
    this.schedules = new ScheduleWatch();
    this.pace = new Pace(ledger);
    this.#load = { ledger, endpoints, random, workers: LOAD_WORKERS, pauseMs: PAUSE_MS };
    this.#lanes = new LaneLoad(this.#load, LANES_SLOWNESS);
    this.repeats = new RepeatLoad(this.#load);
  }

  /** Where the database is now. */
  get cluster(): Cluster {
    return this.#cluster;
  }

  /** Past the proxies. */
  get databaseUrl(): string {
    return this.#databaseUrl;
  }

  /** Asks the database itself, past the workers. */
  async query(text: string): Promise<Row[]> {
    const client = new pg.Client({ connectionString: this.#databaseUrl });
    client.on('error', () => undefined); // the connection ended under it: the query says so
    await client.connect();
    try {
      return (await client.query<Row>(text)).rows;
    } finally {
      await client.end();
    }
  }

  /** From now on all connections lead to `cluster`, which has the same database; as when an address changes its owner. */
  moveTo(cluster: Cluster): void {
    this.#cluster = cluster;
    this.#databaseUrl = cluster.url(new URL(this.#databaseUrl).pathname.slice(1));
    for (const { proxy } of this.workers.all) {
      proxy.pointTo(cluster.port);
      proxy.cutAll();
    }
  }

  /** Starts the load, which runs on whatever happens. */
  async begin(): Promise<void> {
    await prepareMixedLoad(this.#load, this.client);
    await this.#lanes.prepare(this.client);
    await this.schedules.start(this.client);
    const { signal } = this.#stop;
    this.#running = Promise.all([
      runMixedLoad(this.#load, this.client, signal),
      this.#lanes.run(this.client, signal),
      this.repeats.run(this.client, signal),
    ]).catch((error: unknown) => {
      this.#failure ??= error;
    });
  }

  /** While `strike` lasts, what arrived in one moment may arrive again in a later one; and what arrived before, afterwards. */
  async disturb<T>(strike: () => Promise<T>): Promise<T> {
    const isOver = new AbortController();
    const moments = this.#countMoments(isOver.signal);
    try {
      return await strike();
    } finally {
      isOver.abort();
      await moments;
    }
  }

  /** Resolves once so much more was acknowledged or has arrived, by whichever worker. */
  async goOn(things: number): Promise<void> {
    await this.#until([more('things done', () => this.ledger.progress(), things)]);
  }

  /** Lets `fault` strike under load, and resolves once every worker does again what it is for. */
  async survive(fault: (world: World) => Promise<void>): Promise<void> {
    await this.goOn(SOME);
    await this.disturb(() => fault(this));
    await this.#until([
      ...this.workers.all.map((worker) => more(`answers of ${worker.name}`, () => this.client.done(worker), A_FEW)),
      more('attempts that arrive', () => this.ledger.arrivals().length, SOME),
    ]);
  }

  /** As `survive`; resolves with the milliseconds until all goes at its pace again, and with that pace. */
  async recoverFrom(fault: (world: World) => Promise<void>, recovery: Recovery): Promise<Recovered> {
    const perSecond = await this.pace.steady();
    try {
      await this.disturb(() => fault(this));
      const tookMs = await this.pace.untilRecovered(perSecond, recovery);
      return { perSecond, tookMs };
    } finally {
      this.assertSound(); // says more than that the pace is gone
    }
  }

  /** Resolves once each worker has left somebody in doubt, as it does without its database. */
  async untilAllAreInDoubt(): Promise<void> {
    const { client, workers } = this;
    await this.#until(
      workers.all.map((worker) => more(`doubts of ${worker.name}`, () => client.leftInDoubt(worker), 1)),
    );
  }

  /** Resolves once so much has happened that what is judged afterwards proves something. */
  async untilEnoughHasHappened(): Promise<void> {
    const { ledger } = this;
    await this.#until([
      { what: 'acknowledged', count: () => ledger.acks, atLeast: 300 },
      { what: 'callbacks taken', count: () => ledger.taken, atLeast: 30 },
      { what: 'callbacks that nobody takes', count: () => ledger.refusedForGood, atLeast: 1 },
      { what: 'deduplication ids', count: () => this.repeats.count, atLeast: 50 },
      fullLanes(LANES, ledger),
    ]);
  }

  /** Throws when the load met an answer that the contract does not allow, or a worker has ended by itself. */
  assertSound(): void {
    if (this.#failure !== undefined) throw this.#failure;
    const deaths = this.workers.all.flatMap(({ death }) => death ?? []);
    if (deaths.length > 0) throw new Error(deaths.join('\n'));
  }

  /** Ends the load and the schedules, and resumes what is paused. */
  async calmDown(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    this.assertSound();
    await Promise.all([this.#lanes.calmDown(this.client), this.schedules.stop(this.client)]);
  }

  #until(needs: readonly Need[]): Promise<void> {
    return untilEnough(needs, () => this.assertSound());
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#close();
    await this.#running;
    await Promise.all([this.client.close(), this.schedules.close(), this.#endpoints.close()]);
    this.pace.close();
  }

  async #countMoments(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#endpoints.beginIncarnation();
      await sleep(MOMENT_MS);
    }
    this.#endpoints.beginIncarnation();
  }
}

/** Starts everything but the load. */
export async function openWorld(options: WorldOptions): Promise<World> {
  const { seed, cluster, workers: count = 3, pooler, ledger = patientLedger() } = options;
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-cluster-'));
  const flags = [
    ...['--worker-timeout', `${WORKER_TIMEOUT_MS}ms`],
    ...['--database-timeout', `${DATABASE_TIMEOUT_MS}ms`],
    // Retention ends the deletion of a queue that was cut off while its worker lives: the database was away.
    ...['--retention-interval', '2s'],
  ];
  const given = options.databaseUrls ?? [await cluster.createDatabase()];
  const [databaseUrl] = given;
  if (pooler !== undefined) flags.push('--no-database-prepare', '--database-listen-url', databaseUrl);
  const databaseUrls = Array.from({ length: count }, (_, index) => {
    const url = given[index % given.length] ?? databaseUrl;
    return pooler?.through(url) ?? url;
  });
  const endpoints = await openEndpoints(ledger);
  // A machine that stands still for seconds brings these about too, without any fault.
  const onDoubt = () => endpoints.beginIncarnation();
  const workers = await Workers.start({ databaseUrls, dataDir, flags, onDoubt });
  const close = async () => {
    await workers.close();
    rmSync(dataDir, { recursive: true, force: true });
  };
  const random = new SeededRandom(seed);
  return new World({ cluster, databaseUrl, workers, random, ledger, endpoints, pooler, dataDir, close });
}

/** Here a new incarnation is a moment of a fault, not a server that knows of every pause before its start. */
export function patientLedger(): Ledger {
  return new Ledger(ON_ITS_WAY);
}
