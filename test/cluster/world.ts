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
  /** Ended by the caller that started it. */
  cluster: Cluster;
  /** The number of servers. Default: 3. */
  workers?: number;
  /** The databases of the workers, round-robin. Tests query the first one directly. Default: a new database of `cluster`. */
  databaseUrls?: readonly [string, ...string[]];
  /** The pooler through which the servers reach `cluster`, except for LISTEN. Ended by the caller that started it. */
  pooler?: Pooler;
  /** Default: a ledger without log positions. */
  ledger?: Ledger;
}

/** Short, so that a dead worker expires soon, but longer than a busy machine stalls. */
export const WORKER_TIMEOUT_MS = 6_000;
/** The time limit of a statement, and of opening a connection. */
const DATABASE_TIMEOUT_MS = 2_000;

/** Concurrent operations of the mixed load. */
const LOAD_WORKERS = 6;
/** Slow enough that a long fault is under load throughout without producing too many logs to read at the end. */
const PAUSE_MS = 80;
/** Lanes are paused half of the time, and must keep up with the load nevertheless. */
const LANES_SLOWNESS = 16;
/** During a fault, an attempt may be repeated after this time. */
const MOMENT_MS = 20;
/** The number of incarnations after a pause in which attempts that were claimed earlier may still arrive. */
export const ON_ITS_WAY = 100;
/** The number of acknowledgements and arrivals after which every part of the load has run. */
const SOME = 40;
/** The number of responses of a worker that prove its recovery. */
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
  /** The pooler between the servers and the database, if there is one. */
  readonly pooler: Pooler | undefined;
  /** The files of the servers outside the database. */
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

  /** The current cluster of the database. */
  get cluster(): Cluster {
    return this.#cluster;
  }

  /** The URL of the database without the proxies. */
  get databaseUrl(): string {
    return this.#databaseUrl;
  }

  /** Queries the database directly. */
  async query(text: string): Promise<Row[]> {
    const client = new pg.Client({ connectionString: this.#databaseUrl });
    client.on('error', () => undefined); // the connection was lost: the query reports it
    await client.connect();
    try {
      return (await client.query<Row>(text)).rows;
    } finally {
      await client.end();
    }
  }

  /** Redirects all connections to `cluster`, which has the same database, as when a DNS name is changed. */
  moveTo(cluster: Cluster): void {
    this.#cluster = cluster;
    this.#databaseUrl = cluster.url(new URL(this.#databaseUrl).pathname.slice(1));
    for (const { proxy } of this.workers.all) {
      proxy.pointTo(cluster.port);
      proxy.cutAll();
    }
  }

  /** Starts the load, which continues during faults. */
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

  /** While `strike` runs, attempts may be repeated at any time, and earlier attempts may be repeated after it. */
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

  /** Resolves once `things` more acknowledgements and arrivals have been counted, over all workers. */
  async goOn(things: number): Promise<void> {
    await this.#until([more('things done', () => this.ledger.progress(), things)]);
  }

  /** Runs `fault` under load, and resolves once every worker accepts and delivers again. */
  async survive(fault: (world: World) => Promise<void>): Promise<void> {
    await this.goOn(SOME);
    await this.disturb(() => fault(this));
    await this.#until([
      ...this.workers.all.map((worker) => more(`answers of ${worker.name}`, () => this.client.done(worker), A_FEW)),
      more('attempts that arrive', () => this.ledger.arrivals().length, SOME),
    ]);
  }

  /**
   * Like `survive`, but resolves to the milliseconds until the earlier pace is reached again, and to the earlier pace.
   */
  async recoverFrom(fault: (world: World) => Promise<void>, recovery: Recovery): Promise<Recovered> {
    const perSecond = await this.pace.steady();
    try {
      await this.disturb(() => fault(this));
      const tookMs = await this.pace.untilRecovered(perSecond, recovery);
      return { perSecond, tookMs };
    } finally {
      this.assertSound(); // explains more than a missing pace
    }
  }

  /** Resolves once each worker has given a response with an unknown outcome, as it does without its database. */
  async untilAllAreInDoubt(): Promise<void> {
    const { client, workers } = this;
    await this.#until(
      workers.all.map((worker) => more(`doubts of ${worker.name}`, () => client.leftInDoubt(worker), 1)),
    );
  }

  /** Resolves once enough has happened for the final checks to be conclusive. */
  async untilEnoughHasHappened(): Promise<void> {
    const { ledger } = this;
    await this.#until([
      { what: 'acknowledged', count: () => ledger.acks, atLeast: 300 },
      { what: 'callbacks taken', count: () => ledger.taken, atLeast: 30 },
      { what: 'callbacks that are always rejected', count: () => ledger.refusedForGood, atLeast: 1 },
      { what: 'deduplication ids', count: () => this.repeats.count, atLeast: 50 },
      fullLanes(LANES, ledger),
    ]);
  }

  /** Throws if the load received a response that the contract does not allow, or a worker has exited by itself. */
  assertSound(): void {
    if (this.#failure !== undefined) throw this.#failure;
    const deaths = this.workers.all.flatMap(({ death }) => death ?? []);
    if (deaths.length > 0) throw new Error(deaths.join('\n'));
  }

  /** Ends the load and the schedules, and resumes all paused lanes. */
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

/** Starts everything except the load. */
export async function openWorld(options: WorldOptions): Promise<World> {
  const { seed, cluster, workers: count = 3, pooler, ledger = patientLedger() } = options;
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-cluster-'));
  const flags = [
    ...['--worker-timeout', `${WORKER_TIMEOUT_MS}ms`],
    ...['--database-timeout', `${DATABASE_TIMEOUT_MS}ms`],
    // An outage can interrupt the deletion of a queue while its worker lives. Retention then completes it.
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
  // A machine that stalls for seconds causes these events, too, without any fault.
  const onDoubt = () => endpoints.beginIncarnation();
  const workers = await Workers.start({ databaseUrls, dataDir, flags, onDoubt });
  const close = async () => {
    await workers.close();
    rmSync(dataDir, { recursive: true, force: true });
  };
  const random = new SeededRandom(seed);
  return new World({ cluster, databaseUrl, workers, random, ledger, endpoints, pooler, dataDir, close });
}

/**
 * In this ledger a new incarnation is a moment within a fault, not the start of a server that knows every earlier pause.
 */
export function patientLedger(): Ledger {
  return new Ledger(ON_ITS_WAY);
}
