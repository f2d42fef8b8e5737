/** One of several projects under load, with its own ledger of operations and responses. */
import { BalancedClient } from '../../cluster/balanced-client.ts';
import { RepeatLoad } from '../../cluster/repeat-load.ts';
import { ScheduleWatch } from '../../cluster/schedule-watch.ts';
import type { Workers } from '../../cluster/workers.ts';
import { patientLedger } from '../../cluster/world.ts';
import { type Endpoints, openEndpoints } from '../../crash/endpoints.ts';
import { LaneLoad } from '../../crash/lane-load.ts';
import type { Ledger } from '../../crash/ledger.ts';
import { type Load, prepareMixedLoad, runMixedLoad } from '../../crash/mixed-load.ts';
import type { RunLoad } from '../../crash/runs/run-load.ts';
import type { SeededRandom } from '../../support/seeded-random.ts';

/** Concurrent operations of the mixed load. */
const LOAD_WORKERS = 2;
/** Slow, because several projects must stay active throughout. */
const PAUSE_MS = 500;
const LANES_SLOWNESS = 24;
const DELETE_SLOWNESS = 24;
const REPEAT_SLOWNESS = 24;

export interface ProjectParts {
  name: string;
  token: string;
  workers: Pick<Workers, 'up'>;
  random: SeededRandom;
  runs: RunLoad;
}

export class Project {
  readonly name: string;
  readonly ledger: Ledger;
  readonly client: BalancedClient;
  readonly repeats: RepeatLoad;
  readonly schedules = new ScheduleWatch();
  /** Responses with an unknown outcome, including 503, since `forgetDoubts`. */
  doubts: string[] = [];
  readonly #endpoints: Endpoints;
  readonly #load: Load;
  readonly #lanes: LaneLoad;
  readonly #runs: RunLoad;
  #isMoving = false;

  private constructor(parts: ProjectParts & { ledger: Ledger; endpoints: Endpoints }) {
    const { name, token, workers, random, runs, ledger, endpoints } = parts;
    this.name = name;
    this.#runs = runs;
    this.ledger = ledger;
    this.#endpoints = endpoints;
    this.client = new BalancedClient(workers, random, {
      token,
      onDoubt: (what, worker) => void this.doubts.push(`${name} at ${worker.name}: ${what}`),
    });
    this.#load = { ledger, endpoints, random, workers: LOAD_WORKERS, pauseMs: PAUSE_MS };
    this.#lanes = new LaneLoad(this.#load, LANES_SLOWNESS, DELETE_SLOWNESS);
    this.repeats = new RepeatLoad(this.#load, REPEAT_SLOWNESS);
  }

  static async open(parts: ProjectParts): Promise<Project> {
    const ledger = patientLedger();
    return new Project({ ...parts, ledger, endpoints: await openEndpoints(ledger) });
  }

  async prepare(): Promise<void> {
    await prepareMixedLoad(this.#load, this.client);
    await this.#lanes.prepare(this.client);
    await this.schedules.start(this.client);
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([
      runMixedLoad(this.#load, this.client, signal),
      this.#lanes.run(this.client, signal),
      this.repeats.run(this.client, signal),
      this.#runs.run(this.client, signal),
    ]);
  }

  /** Resumes the paused lanes, notifies the waiting runs, and ends the schedules. */
  async calmDown(): Promise<void> {
    const { client } = this;
    await Promise.all([this.#lanes.calmDown(client), this.#runs.calmDown(client), this.schedules.stop(client)]);
  }

  /** Allows earlier arrivals to be repeated. */
  beginMoment(): void {
    this.#endpoints.beginIncarnation();
  }

  /** Only grows: publishes that were acknowledged. */
  get acks(): number {
    return this.ledger.acks;
  }

  /** Only grows: attempts that arrived. */
  get arrivals(): number {
    return this.ledger.arrivals().length;
  }

  /** Requests may be rejected during a move of the project. */
  get isMoving(): boolean {
    return this.#isMoving;
  }

  async during<T>(move: () => Promise<T>): Promise<T> {
    this.#isMoving = true;
    try {
      return await move();
    } finally {
      this.#isMoving = false;
    }
  }

  async close(): Promise<void> {
    await Promise.all([this.client.close(), this.schedules.close(), this.#endpoints.close()]);
  }
}
