/**
 * Several real servers on one real PostgreSQL under mixed load, the books kept outside of them, and one question: what may
 * fail without anything being lost? A fault strikes while the load runs on (faults.ts); then all is left in peace and judged.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SeededRandom } from '../../src/testing/seeded-random.ts';
import { type Books, openBooks } from '../crash/books.ts';
import { type Endpoints, openEndpoints } from '../crash/endpoints.ts';
import { LaneBook, type LaneEvent } from '../crash/lane-book.ts';
import { LaneLoad } from '../crash/lane-load.ts';
import { type Load, prepareMixedLoad, runMixedLoad } from '../crash/mixed-load.ts';
import type { Cluster, Row } from '../support/postgres/cluster.ts';
import type { Pooler } from '../support/postgres/pooler.ts';
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
  /** What the servers reach `cluster` through, but for listening. Whoever started it ends it. */
  pooler?: Pooler;
}

/** Short, so that a test need not wait long for the heirs of a dead worker; longer than a busy machine stops for. */
export const WORKER_TIMEOUT_MS = 6_000;
/** Of a statement, and of the making of a connection. */
export const DATABASE_TIMEOUT_MS = 2_000;

/** Operations of the mixed load under way at a time. */
const LOAD_WORKERS = 6;
/** Lanes are paused half of the time, and must keep up nevertheless. */
const LANES_SLOWNESS = 16;
/** While something is broken, what arrived in one moment may arrive again in a later one. */
const MOMENT_MS = 20;
/** Moments after a pause in which what was claimed before it may still arrive. */
const ON_ITS_WAY = 100;

export class World {
  readonly workers: Workers;
  readonly random: SeededRandom;
  readonly client: BalancedClient;
  readonly books: Books;
  readonly repeats: RepeatLoad;
  readonly schedules: ScheduleWatch;
  readonly pace: Pace;
  /** Between the servers and the database, if there is one. */
  readonly pooler: Pooler | undefined;
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
    books: Books;
    endpoints: Endpoints;
    pooler: Pooler | undefined;
    close: () => Promise<void>;
  }) {
    const { cluster, databaseUrl, workers, random, books, endpoints, pooler, close } = parts;
    this.#cluster = cluster;
    this.#databaseUrl = databaseUrl;
    this.workers = workers;
    this.random = random;
    this.books = books;
    this.pooler = pooler;
    this.#endpoints = endpoints;
    this.#close = close;
    this.client = new BalancedClient(workers, random);
    this.schedules = new ScheduleWatch();
    this.pace = new Pace(books.ledger);
    this.#load = { books, endpoints, random, workers: LOAD_WORKERS };
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
  query(text: string): Promise<Row[]> {
    return this.#cluster.query(text, [], new URL(this.#databaseUrl).pathname.slice(1));
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

  /** Lets `fault` strike, and resolves with the milliseconds until all goes at its pace again, and with that pace. */
  async survive(
    fault: (world: World) => Promise<void>,
    recovery?: Recovery,
  ): Promise<{ perSecond: number; tookMs: number }> {
    const perSecond = await this.pace.steady();
    try {
      await this.disturb(() => fault(this));
      const tookMs = await this.pace.untilRecovered(perSecond, recovery);
      return { perSecond, tookMs };
    } finally {
      this.assertSound(); // says more than that the pace is gone
    }
  }

  /** Throws when the load met an answer that the contract does not allow, or a worker has ended by itself. */
  assertSound(): void {
    if (this.#failure !== undefined) throw this.#failure;
    const deaths = this.workers.all.flatMap(({ death }) => death ?? []);
    if (deaths.length > 0) throw new Error(deaths.join('\n'));
  }

  /** Ends the load, and resumes what is paused. */
  async calmDown(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    this.assertSound();
    await this.#lanes.calmDown(this.client);
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
export async function openWorld({ seed, cluster, workers: count = 3, pooler }: WorldOptions): Promise<World> {
  const dataDir = mkdtempSync(join(tmpdir(), 'waypost-cluster-'));
  const flags = [
    ...['--worker-timeout', `${WORKER_TIMEOUT_MS}ms`],
    ...['--database-timeout', `${DATABASE_TIMEOUT_MS}ms`],
    // Retention ends the deletion of a queue that its worker did not live to end.
    ...['--retention-interval', '2s'],
  ];
  const databaseUrl = await cluster.createDatabase();
  if (pooler !== undefined) flags.push('--no-database-prepare', '--database-listen-url', databaseUrl);
  const reachedAt = pooler?.through(databaseUrl) ?? databaseUrl;
  const workers = await Workers.start({ count, databaseUrl: reachedAt, dataDir, flags });
  const books = { ...openBooks(), lanes: new PatientLaneBook() };
  const close = async () => {
    await workers.close();
    rmSync(dataDir, { recursive: true, force: true });
  };
  const endpoints = await openEndpoints(books);
  return new World({ cluster, databaseUrl, workers, random: new SeededRandom(seed), books, endpoints, pooler, close });
}

/** Here a new incarnation is a moment of a fault, not a server that knows of every pause before its start. */
class PatientLaneBook extends LaneBook {
  override note(event: LaneEvent): void {
    const isOrder = event.kind === 'paused' || event.kind === 'deleted';
    super.note(isOrder ? { ...event, incarnation: event.incarnation + ON_ITS_WAY } : event);
  }
}
