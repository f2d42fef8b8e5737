/** Draws random actions of workflow clients, and random faults. */
import type { Millis } from '../../src/engine/model.ts';
import type { SeededRandom } from '../support/seeded-random.ts';
import { WorkflowClient } from './workflow-client.ts';
import { Deployments } from './workflow-deployments.ts';
import { CALLED_ORIGIN, respondToCall, WorkflowEndpoint } from './workflow-endpoint.ts';
import { type RunContext, triggerHeaders } from './workflow-headers.ts';
import { inspectRuns } from './workflow-inspection.ts';
import { type RunName, WorkflowNotes } from './workflow-notes.ts';
import { EVENT_IDS, ProgramLibrary } from './workflow-programs.ts';
import { PROJECT, type World } from './world.ts';

/** The relative frequency of each action. */
const STEP_WEIGHTS = {
  trigger: 30,
  gather: 4,
  race: 6,
  share: 3,
  notify: 14,
  notifyRun: 10,
  cancel: 4,
  retryFailed: 5,
  deploy: 6,
  resumeParked: 2,
  changeMood: 8,
  crash: 5,
  shutDown: 3,
  makeUnavailable: 3,
  jumpClock: 4,
  inspect: 6,
};

const ORIGINS = [1, 2, 3].map((number) => `https://flows-${number}.example`);

export class WorkflowWorkload {
  readonly notes = new WorkflowNotes();
  readonly programs: ProgramLibrary;
  readonly deployments: Deployments;
  readonly #world: World;
  readonly #random: SeededRandom;
  readonly #client: WorkflowClient;
  readonly #endpoints: WorkflowEndpoint[];
  /** Most worlds never set their clocks, so that times can be checked. */
  readonly #hasJumps: boolean;
  #runs = 0;

  constructor(world: World, random: SeededRandom, { isUnchecked = false }: { isUnchecked?: boolean } = {}) {
    this.#world = world;
    this.#random = random.fork();
    this.#client = new WorkflowClient(world, this.#random);
    this.programs = new ProgramLibrary(this.#random);
    this.deployments = new Deployments(this.programs, this.#random);
    this.#hasJumps = this.#random.chance(0.2);
    const { notes, deployments } = this;
    const deps = { world, random: this.#random, client: this.#client, deployments, notes, isUnchecked };
    this.#endpoints = ORIGINS.map((origin) => {
      const endpoint = new WorkflowEndpoint(deps);
      world.network.setEndpoint(origin, endpoint.respond);
      return endpoint;
    });
    world.network.setEndpoint(CALLED_ORIGIN, respondToCall);
    for (const endpoint of this.#endpoints) endpoint.changeMood();
    this.#client.faults = this.#random.choose([
      { late: 0, twice: 0, lost: 0 },
      { late: 0.05, twice: 0.05, lost: 0.05 },
      { late: 0.2, twice: 0.2, lost: 0.2 },
    ]);
  }

  /** Starts one random action. Its requests continue while time passes. */
  step(): void {
    void this[`${this.#random.weighted(STEP_WEIGHTS)}`]();
  }

  pauseMs(): Millis {
    return this.#random.chance(0.6) ? this.#random.int(0, 100) : this.#random.int(100, 12_000);
  }

  /** Ends all faults: endpoints respond, their code fits each run, and no request is lost. */
  heal(): void {
    this.deployments.deployForAll();
    for (const endpoint of this.#endpoints) endpoint.changeMood('fine');
    this.#client.faults = { late: 0, twice: 0, lost: 0 };
  }

  /** Starts several runs that wait for one event, and then notifies it. */
  gather(): void {
    const { clock } = this.#world;
    const eventId = this.#random.choose(EVENT_IDS);
    for (let nth = this.#random.int(2, 4); nth > 0; nth -= 1) void this.trigger(this.programs.drawWaiting(eventId, 90));
    clock.startTimer(this.#random.int(1_000, 20_000), () => void this.notify(eventId));
  }

  /** Starts several runs that invoke the same run. */
  async share(): Promise<void> {
    for (let nth = this.#random.int(2, 3); nth > 0; nth -= 1) {
      void this.trigger(this.programs.drawSharing());
      await this.#world.clock.delay(this.#random.int(0, 40_000));
    }
  }

  /** Notifies an event when a run starts to wait for it, or when its wait times out. */
  async race(): Promise<void> {
    const random = this.#random;
    const eventId = random.choose(EVENT_IDS);
    const timeoutS = random.choose([2, 90]);
    const run = await this.trigger(this.programs.drawWaiting(eventId, timeoutS));
    if (!run) return;
    const { clock } = this.#world;
    const aroundMs = timeoutS === 2 ? 2_000 : 0;
    for (let nth = random.int(2, 5); nth > 0; nth -= 1) {
      clock.startTimer(aroundMs + random.int(0, 150), () => void this.notifyRun(run, eventId));
    }
    clock.startTimer(aroundMs + 1_000, () => void this.inspect());
  }

  /** Resolves to the run, if the response arrived. */
  async trigger(program = this.programs.draw()): Promise<RunName | undefined> {
    const random = this.#random;
    this.#runs += 1;
    const generation = random.chance(0.8) ? 'today' : 'before';
    const isRepeated = generation === 'today' && random.chance(0.2);
    const runId = isRepeated ? `order-${random.int(1, 3)}` : `run-${this.#runs}`;
    const url = `${random.choose(ORIGINS)}/${generation}`;
    const context: RunContext = { runId, createdAtMs: 0, url, user: `user-${random.int(1, 9)}`, invokeCount: 0 };
    const attempts: Record<string, string> = {
      'upstash-retries': String(random.int(1, 5)),
      'upstash-retry-delay': random.choose(['0', '1000', '2000 * (1 + retried)']),
    };
    if (random.chance(0.2)) attempts['upstash-delay'] = `${random.int(1, 20)}s`;
    if (random.chance(0.15)) {
      attempts['upstash-flow-control-key'] = 'shared';
      attempts['upstash-flow-control-value'] = `parallelism=${random.int(1, 3)}`;
    }
    const note = this.notes.trigger(runId, program, this.#client.request());
    const headers = triggerHeaders(context, attempts);
    const item = { destination: url, headers, body: JSON.stringify({ program: program.name }) };
    const [published] = await orElse(this.#client.batch([item], note.request), []);
    if (!published?.run) return undefined;
    note.messageId = published.messageId;
    note.createdAtMs = published.run.createdAtMs;
    return { runId, createdAtMs: note.createdAtMs };
  }

  async notify(eventId = this.#random.choose(EVENT_IDS)): Promise<void> {
    const { event, request } = this.notes.notify(eventId, undefined, this.#client.request());
    await orElse(this.#client.notify(eventId, event, request), undefined);
  }

  /** Notifies one run, usually a recently started one, perhaps before it waits. */
  async notifyRun(run = this.#someRun(), eventId = this.#random.choose(EVENT_IDS)): Promise<void> {
    if (!run) return;
    const notification = this.notes.notify(eventId, run, this.#client.request());
    const { event, request } = notification;
    const notified = await orElse(this.#client.notifyRun(run.runId, eventId, event, request), undefined);
    notification.isSaved = notified?.runCreatedAtMs === run.createdAtMs && notified.waiter === undefined;
  }

  async cancel(): Promise<void> {
    const run = this.#someRun();
    if (!run) return;
    const createdAtMs = this.#random.chance(0.5) ? run.createdAtMs : undefined;
    const request = this.notes.ending('cancel', run.runId, this.#client.request(), createdAtMs);
    await orElse(this.#client.cancel(run.runId, createdAtMs, request), false);
  }

  async retryFailed(): Promise<void> {
    const dlqIds = await this.#deadRuns();
    if (dlqIds.length > 0) await this.#revive(this.#random.choose(dlqIds));
  }

  /** Resumes or restarts all failed runs. */
  async retryAllFailed(): Promise<void> {
    for (const dlqId of await this.#deadRuns()) await this.#revive(dlqId);
  }

  async #deadRuns(): Promise<string[]> {
    const { engine } = this.#world;
    const page = { count: 100, order: 'latestFirst' as const };
    const list = async () => engine?.storeOf(PROJECT).deadRuns.listDeadRuns({ filter: {}, page });
    const found = await orElse(list(), undefined);
    return found?.items.map(({ dlqId }) => dlqId) ?? [];
  }

  async #revive(dlqId: string): Promise<void> {
    const how = this.#random.choose(['resumeRun', 'resumeRun', 'restartRun'] as const);
    const override = this.#random.chance(0.3) ? { maxRetries: 5 } : {};
    const revival = this.notes.revive(how, dlqId, this.#client.request());
    const started = await orElse(this.#client.revive(how, dlqId, override, revival.request), undefined);
    if (started) revival.started = started;
  }

  /** Deploys changed code while runs are active, and usually the earlier code again. */
  deploy(): void {
    const random = this.#random;
    const program = this.programs.drawPausing();
    for (let nth = random.int(1, 3); nth > 0; nth -= 1) void this.trigger(program);
    for (let atMs = 0, nth = random.int(1, 3); nth > 0; nth -= 1) {
      atMs += random.int(50, 20_000);
      this.#world.clock.startTimer(atMs, () => this.deployments.deploy(program.name));
    }
  }

  /** Resumes one parked run, or all parked runs. */
  async resumeParked(): Promise<void> {
    const run = this.#random.chance(0.5) ? this.#someRun() : undefined;
    const request = this.notes.resumeParked(this.#client.request());
    await orElse(this.#client.resumeParked(run?.runId, request), undefined);
  }

  changeMood(): void {
    const index = this.#random.int(0, this.#endpoints.length - 1);
    this.#world.trace.add(`${ORIGINS[index]} is ${this.#endpoints[index]?.changeMood()}`);
  }

  crash(): void {
    this.#world.crash('by the workload');
  }

  shutDown(): Promise<void> {
    return this.#world.shutDown(this.#random.choose([0, 100, 5_000]));
  }

  makeUnavailable(): void {
    this.#world.makeUnavailable(this.#random.int(50, 8_000));
  }

  jumpClock(): void {
    if (this.#hasJumps) this.#world.jumpClock(this.#random.int(-120_000, 120_000));
  }

  inspect(): Promise<void> {
    return inspectRuns(this.#world);
  }

  #someRun(): RunName | undefined {
    const started = this.notes.triggers
      .flatMap(({ runId, createdAtMs }) => (createdAtMs === undefined ? [] : [{ runId, createdAtMs }]))
      .slice(-8);
    const revived = this.notes.revivals.flatMap(({ started = [] }) => started).slice(-2);
    const known = [...started, ...revived];
    return known.length === 0 ? undefined : this.#random.choose(known);
  }
}

/** Replaces an error by `otherwise`: the checks find out whether the request took effect. */
async function orElse<T>(answer: Promise<T>, otherwise: T): Promise<T> {
  try {
    return await answer;
  } catch {
    return otherwise;
  }
}
