/**
 * Simulates an overload: many clients of one project publish as soon as they get a response, on a database that commits a
 * few rows at a time. Another project publishes at the same time, and a workflow run continues step by step.
 */

import type { Engine } from '../../src/engine/commands.ts';
import { createEngine } from '../../src/engine/create.ts';
import type { PublishCommand } from '../../src/engine/messages/publish-command.ts';
import type { Millis, ProjectId } from '../../src/engine/model.ts';
import type { EngineSettings } from '../../src/engine/settings.ts';
import { Overloaded } from '../../src/protocol/rate-limits.ts';
import type { Store } from '../../src/store/store.ts';
import { alteredStore, type StoreMethods } from '../support/altered-store.ts';
import { ENGINE_SETTINGS } from '../support/engine-settings.ts';
import { SeededRandom } from '../support/seeded-random.ts';
import { SILENT } from '../support/silent-log.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { SimulatedNetwork } from '../support/simulated-network.ts';
import { openDatabase, storeOver } from './database.ts';
import { FaultyDriver } from './faulty-driver.ts';

export interface OverloadBug {
  store?: (store: Store) => Partial<StoreMethods>;
  engine?: (engine: Engine) => Partial<Engine>;
  settings?: Partial<EngineSettings>;
}

/** The measurements after the warm-up. Times are in milliseconds. */
export interface OverloadMeasurements {
  accepted: number;
  delivered: number;
  shed: number;
  /** The response time of each accepted publish of the busy clients. */
  publishMs: Millis[];
  /** The time from each publish of the other project to its arrival at the endpoint. */
  otherMs: Millis[];
  otherShed: number;
  /** The time from the publish of each step to its delivery. */
  stepMs: Millis[];
  stepsShed: number;
}

const BUSY_CLIENTS = 400;
const COMMIT_MS = 40;
const ROWS_PER_COMMIT = 40;
const WARM_UP_MS = 3_000;
const MEASURED_MS = 5_000;
/** The number of messages that can be accepted and settled in `MEASURED_MS` if nothing else is saved. */
export const SAVED_MAX = ((MEASURED_MS / COMMIT_MS) * ROWS_PER_COMMIT) / 2;
const OTHER_EVERY_MS = 200;
const ORIGINS = { busy: 'https://busy.example', other: 'https://other.example', run: 'https://run.example' } as const;

/** Many slots, and a retention that deletes nothing during the test. */
export const SETTINGS: EngineSettings = {
  ...ENGINE_SETTINGS,
  inFlightMax: 512,
  inFlightPerOriginMax: 256,
  inFlightBytesMax: 10_000_000,
  logRetentionMs: 86_400_000,
  dlqRetentionMs: 86_400_000,
  retentionIntervalMs: 86_400_000,
  lazyFetchBytes: 0,
};

export async function playOverload(bug: OverloadBug = {}): Promise<OverloadMeasurements> {
  const inner = await openDatabase();
  try {
    return await new Overload(bug).play(inner);
  } finally {
    await inner.close();
  }
}

class Overload {
  readonly #clock = new SimulatedClock();
  readonly #random = new SeededRandom(1);
  readonly #network = new SimulatedNetwork(this.#clock, { travelMs: () => 2, timeoutMs: 60_000 });
  readonly #bug: OverloadBug;
  #measured = noMeasurements();
  #engine!: Engine;
  /** The time at which each message was published, keyed by the body of the message. */
  readonly #publishedAtMs = new Map<string, Millis>();

  constructor(bug: OverloadBug) {
    this.#bug = bug;
  }

  async play(inner: Awaited<ReturnType<typeof openDatabase>>): Promise<OverloadMeasurements> {
    const clock = this.#clock;
    const driver = new FaultyDriver({
      inner,
      clock,
      awake: () => Promise.resolve(),
      nextFaults: () => ({
        ...{ commitMs: COMMIT_MS, responseMs: 0, unavailable: false, losesResponse: false },
        ...{ crash: 'none', crashAtStatement: 0 },
      }),
      crash: () => {},
    });
    const store = storeOver(driver, undefined, { costMax: ROWS_PER_COMMIT });
    const other = store.projects.ensureProject({
      name: 'other',
      signingKeys: { current: 'sealed', next: 'sealed' },
      nowMs: clock.nowMs(),
    });
    await clock.advanceBy(COMMIT_MS);
    const { projectId: otherId } = await other;
    for (const origin of Object.values(ORIGINS)) {
      this.#network.setEndpoint(origin, () => ({ kind: 'answer', status: 200, afterMs: 5 }));
    }
    await this.#start(store);
    this.#network.onAttempt = (attempt) => {
      if (attempt.outcome === undefined) this.#noteArrival(attempt.origin, textOf(attempt.claimed.message.body));
    };
    for (let nth = 0; nth < BUSY_CLIENTS; nth += 1) void this.#publishRepeatedly(1, nth);
    void this.#publishRegularly(otherId);
    void this.#continueRun();
    await clock.advanceBy(WARM_UP_MS);
    this.#measured = noMeasurements();
    await clock.advanceBy(MEASURED_MS);
    return this.#measured;
  }

  async #start(store: Store): Promise<void> {
    const creating = createEngine({
      store: alteredStore(store, this.#bug.store?.(store) ?? {}),
      clock: this.#clock,
      randomness: this.#random,
      delivery: this.#network.connect(),
      log: SILENT,
      settings: { ...SETTINGS, ...this.#bug.settings },
      worker: 'worker',
    });
    await this.#clock.advanceBy(10 * COMMIT_MS);
    const engine = await creating;
    this.#engine = override(engine, this.#bug.engine?.(engine) ?? {});
  }

  /** Publishes again after each response, or after the `Retry-After` of a rejection. */
  async #publishRepeatedly(projectId: ProjectId, client: number): Promise<void> {
    for (let nth = 0; ; nth += 1) {
      const startMs = this.#clock.elapsedMs;
      const refusal = await this.#publish(projectId, commandFor(ORIGINS.busy, `${client}/${nth}`));
      if (refusal === undefined) {
        this.#measured.accepted += 1;
        this.#measured.publishMs.push(this.#clock.elapsedMs - startMs);
      } else {
        this.#measured.shed += 1;
        await this.#clock.delay(1_000 * Number(refusal.headers['Retry-After']));
      }
    }
  }

  async #publishRegularly(projectId: ProjectId): Promise<void> {
    for (let nth = 0; ; nth += 1) {
      void this.#publish(projectId, commandFor(ORIGINS.other, `other ${nth}`)).then((refusal) => {
        if (refusal) this.#measured.otherShed += 1;
      });
      await this.#clock.delay(OTHER_EVERY_MS);
    }
  }

  /** Publishes the steps of a run, one step in each interval. */
  async #continueRun(): Promise<void> {
    const runId = 'wfr_run';
    const kind = { isInvoke: false, isBySdk: false, isUnknownSdk: false, isRest: false };
    await this.#publish(1, {
      ...commandFor(ORIGINS.run, 'payload', { run: { kind: 'start', runId, features: [], ...kind } }),
    });
    for (let stepId = 1; ; stepId += 1) {
      await this.#clock.delay(OTHER_EVERY_MS);
      const step = JSON.stringify({ stepId, stepName: `step ${stepId}`, stepType: 'Run', out: '1', concurrent: 1 });
      const append = { kind: 'append', runId, callType: 'step', features: [] as never[] } as const;
      const refusal = await this.#publish(1, commandFor(ORIGINS.run, step, { run: append }));
      if (refusal) this.#measured.stepsShed += 1;
    }
  }

  /** Resolves to the rejection, or to `undefined` if the publish was accepted. */
  async #publish(projectId: ProjectId, command: PublishCommand): Promise<Overloaded | undefined> {
    this.#publishedAtMs.set(textOf(command.body), this.#clock.elapsedMs);
    try {
      await this.#engine.publish(projectId, [command]);
      return undefined;
    } catch (error) {
      if (error instanceof Overloaded) return error;
      throw error;
    }
  }

  #noteArrival(origin: string, body: string): void {
    const delayMs = this.#clock.elapsedMs - (this.#publishedAtMs.get(body) ?? 0);
    this.#publishedAtMs.delete(body);
    if (origin === ORIGINS.busy) this.#measured.delivered += 1;
    else if (origin === ORIGINS.other) this.#measured.otherMs.push(delayMs);
    else this.#measured.stepMs.push(delayMs);
  }
}

function noMeasurements(): OverloadMeasurements {
  return { accepted: 0, delivered: 0, shed: 0, publishMs: [], otherMs: [], otherShed: 0, stepMs: [], stepsShed: 0 };
}

function commandFor(origin: string, body: string, more: Partial<PublishCommand['options']> = {}): PublishCommand {
  const settings = { dialect: 'upstash', maxRetries: 0 } as const;
  const options = { method: 'POST' as const, header: {}, explicitHeader: {}, settings, ...more };
  return { url: `${origin}/hook`, body: Buffer.from(body), options };
}

function textOf(body: Uint8Array): string {
  return Buffer.from(body).toString();
}

function override<T extends object>(whole: T, methods: Partial<T>): T {
  return new Proxy(whole, {
    get: (target, name) => {
      const method = methods[name as keyof T] ?? target[name as keyof T];
      return typeof method === 'function' ? method.bind(target) : method;
    },
  });
}
