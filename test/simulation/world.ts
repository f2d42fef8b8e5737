/**
 * The simulated world: one database that outlives everything, one server process at a time that is started, killed,
 * drained and started again, the network of endpoints, and clients whose calls are noted in a ledger.
 */

import type { Engine } from '../../src/engine/commands.ts';
import { createEngine } from '../../src/engine/create.ts';
import type { Claimed, MessageId, Millis } from '../../src/engine/model.ts';
import type { Clock, Timer } from '../../src/engine/ports.ts';
import type { EngineSettings } from '../../src/engine/settings.ts';
import { type Store, type StoreLimits, StoreUnavailable } from '../../src/engine/stores.ts';
import { ApiError } from '../../src/protocol/errors.ts';
import type { Driver, Queries } from '../../src/store/driver.ts';
import type { SeededRandom } from '../../src/testing/seeded-random.ts';
import { SimulatedClock } from '../../src/testing/simulated-clock.ts';
import { type Attempt, SimulatedNetwork, type SimulatedSender } from '../../src/testing/simulated-network.ts';
import { storeOver } from './database.ts';
import { type CrashPoint, type Fate, FaultyDriver } from './faulty-driver.ts';
import { type Call, Ledger } from './ledger.ts';
import { Trace } from './trace.ts';

/** A broken promise, by its number in docs/architecture.md. */
export interface Violation {
  promise: string;
  text: string;
  messageId?: MessageId;
}

/** Puts a bug between the parts, so that a test can prove that the checks would see it. */
export interface Sabotage {
  store?: (store: Store) => Store;
}

export interface WorldDeps {
  random: SeededRandom;
  driver: Driver;
  settings: EngineSettings;
  /** Default: none. */
  limits?: StoreLimits;
  sabotage?: Sabotage;
}

/** The start of one attempt, as the network saw it. */
export interface Start {
  attempt: Attempt;
  atMs: Millis;
  /** What its process had in flight at that moment, this one included. */
  running: Claimed[];
}

/** How likely each kind of fault is, a transaction. All zero: the world is healed. */
export interface Faults {
  crashPerTransaction: number;
  crashPerOutcome: number;
  commitMsMax: Millis;
}

const NO_FAULTS: Faults = { crashPerTransaction: 0, crashPerOutcome: 0, commitMsMax: 1 };

/** One server process, from its start until it is killed or has drained. */
interface Process {
  number: number;
  driver: FaultyDriver;
  store: Store;
  sender: SimulatedSender;
  clock: MortalClock;
  engine?: Engine;
  isDead: boolean;
}

const NO_LIMITS: StoreLimits = { queuesMax: 0, parallelismMax: 0, messagesPerDayMax: 0, journalBytesMax: 0 };

export const PROJECT = 1;
/** Of the largest message. */
export const BODY_BYTES_MAX = 2_500;

export class World {
  readonly clock = new SimulatedClock();
  readonly trace = new Trace();
  readonly ledger = new Ledger(() => this.clock.elapsedMs);
  readonly network: SimulatedNetwork;
  readonly violations: Violation[] = [];
  /** Position in the trace, and elapsed time, at which each attempt started. */
  readonly startOf = new Map<Attempt, { at: number; atMs: Millis }>();
  /** Positions in the trace at which a process ended, by crash or shutdown. */
  readonly endings: number[] = [];
  /** Elapsed times at which anything went wrong that may delay a message. */
  readonly disturbances: Millis[] = [];
  /** Attempts whose process died: their results come late, if at all. */
  readonly orphans: Claimed[] = [];
  readonly counts = { crashes: 0, drains: 0, starts: 0 };
  readonly settings: EngineSettings;
  readonly limits: StoreLimits;
  /** What was in flight when each attempt started, itself included. */
  readonly starts: Start[] = [];
  /** Each time the wall clock was set: the position in the trace, the elapsed time, and what it showed before. */
  readonly jumps: { at: number; atMs: Millis; fromMs: Millis }[] = [];
  faults: Faults = NO_FAULTS;
  #unavailableUntilMs: Millis = 0;
  readonly #random: SeededRandom;
  readonly #driver: Driver;
  readonly #sabotage: Sabotage;
  #process: Process | undefined;
  #starting = false;

  constructor({ random, driver, settings, limits = NO_LIMITS, sabotage = {} }: WorldDeps) {
    this.#random = random.fork();
    this.#driver = driver;
    this.#sabotage = sabotage;
    this.settings = settings;
    this.limits = limits;
    const travel = random.fork();
    this.network = new SimulatedNetwork(this.clock, { travelMs: () => travel.int(1, 30), timeoutMs: 60_000 });
    this.network.onAttempt = (attempt) => this.#observe(attempt);
  }

  /** The engine that takes calls now; `undefined` while the server is down. */
  get engine(): Engine | undefined {
    return this.#process?.engine;
  }

  get store(): Store | undefined {
    return this.#process?.engine && this.#process.store;
  }

  /** Calls of the running process to the database so far. */
  get driverCalls(): number {
    return this.#process?.driver.calls ?? 0;
  }

  /** Starts a server, again and again until it stands. */
  async start(): Promise<void> {
    if (this.#starting || this.#process) return;
    this.#starting = true;
    while (!(await this.#tryStart())) await this.clock.delay(this.#random.int(100, 2_000));
    this.#starting = false;
  }

  /** The process dies now. The next one starts after a while. */
  crash(why: string): void {
    const process = this.#process;
    if (!process || process.isDead) return;
    this.counts.crashes += 1;
    this.#note(`crash (${why}) of process ${process.number}`);
    this.orphans.push(...process.sender.running.values());
    this.#bury(process);
  }

  /** The process is asked to end, lets running attempts finish for up to `limitMs`, and ends. */
  async shutDown(limitMs: Millis): Promise<void> {
    const process = this.#process;
    if (!process?.engine || process.isDead) return;
    this.counts.drains += 1;
    this.#note(`shutdown of process ${process.number} within ${limitMs} ms`);
    const startedAtMs = this.clock.elapsedMs;
    await process.engine.drain(limitMs);
    if (process.isDead) return;
    this.#note(`process ${process.number} has drained`);
    const tookMs = this.clock.elapsedMs - startedAtMs;
    // After the limit only the releases are left, which an unavailable store may hold up for a moment.
    if (tookMs > limitMs + 2_000) this.violate('P2', `a drain within ${limitMs} ms took ${tookMs} ms`);
    this.#bury(process);
  }

  /** For `ms` the database refuses to write. */
  makeUnavailable(ms: Millis): void {
    this.#note(`store unavailable for ${ms} ms`);
    this.#unavailableUntilMs = Math.max(this.#unavailableUntilMs, this.clock.elapsedMs + ms);
    this.disturbances.push(this.#unavailableUntilMs);
  }

  jumpClock(ms: Millis): void {
    this.jumps.push({ at: this.trace.length, atMs: this.clock.elapsedMs, fromMs: this.clock.nowMs() });
    this.#note(`wall clock set by ${ms} ms`);
    this.clock.jumpBy(ms);
  }

  /** From now on nothing fails. */
  heal(): void {
    this.#note('healed');
    this.faults = NO_FAULTS;
    this.#unavailableUntilMs = 0;
  }

  violate(promise: string, text: string, messageId?: MessageId): void {
    this.trace.add(`VIOLATION of ${promise}: ${text} ${messageId ?? ''}`);
    this.violations.push(messageId === undefined ? { promise, text } : { promise, text, messageId });
  }

  /** Makes a client's call and notes how it ended. A refusal is an answer; any other error is a violation. */
  async call<T>(call: Call, name: string, action: () => Promise<T>, heard: (answer: T) => void): Promise<void> {
    try {
      const answer = await action();
      if (this.ledger.end(call, 'acked', this.trace.length, this.clock.elapsedMs)) {
        heard(answer);
        this.trace.add(`${this.clock.elapsedMs} ${name} acked`);
      }
    } catch (error) {
      const isRefusal =
        error instanceof StoreUnavailable || (error instanceof ApiError && error.code === 'unavailable');
      if (!isRefusal) this.violate('P11', `${name} failed: ${String(error)}`);
      this.ledger.end(call, 'rejected', this.trace.length, this.clock.elapsedMs);
      this.trace.add(`${this.clock.elapsedMs} ${name} rejected`);
    }
  }

  /** What somebody asks of the server. Throws `ProcessDied` when none runs, or when it ends before it has answered. */
  request<T>(action: (engine: Engine) => Promise<T>): Promise<T> {
    const process = this.#process;
    if (!process?.engine) return Promise.reject(new ProcessDied());
    return Promise.race([action(process.engine), process.clock.death]);
  }

  /** Runs `work` on the database itself, whatever state the server is in. */
  look<Row extends object>(text: string): Promise<Row[]> {
    return this.lookWith((queries) => queries.query<Row>(text));
  }

  /** As `look`, for several questions to one snapshot. */
  lookWith<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    return this.#driver.read(work);
  }

  async #tryStart(): Promise<boolean> {
    const process = this.#newProcess();
    this.#process = process;
    try {
      const engine = await Promise.race([this.#startEngine(process), process.clock.death]);
      if (process.isDead) return false;
      process.engine = engine;
      this.#note(`process ${process.number} runs`);
      return true;
    } catch (error) {
      if (!(error instanceof StoreUnavailable || error instanceof ProcessDied)) throw error;
      if (!process.isDead) this.#bury(process);
      return false;
    }
  }

  #newProcess(): Process {
    this.counts.starts += 1;
    const clock = new MortalClock(this.clock);
    const sender = this.network.connect();
    const driver = new FaultyDriver({
      inner: this.#driver,
      clock: this.clock,
      nextFate: () => this.#nextFate(),
      crash: (where) => this.crash(`${where} of a transaction`),
    });
    const store = this.#witnessed((this.#sabotage.store ?? ((same) => same))(storeOver(driver, this.limits)));
    return { number: sender.number, driver, store, sender, clock, isDead: false };
  }

  /** `store`, with a note in the ledger of each trigger that it is asked to save. */
  #witnessed(store: Store): Store {
    const { ledger, trace, clock } = this;
    const changeSchedules: Store['changeSchedules'] = async (changes, nowMs) => {
      const triggers = changes.map(({ messages }) =>
        messages.length === 0
          ? undefined
          : ledger.begin(ledger.triggers, { messages: messages.map(({ message }) => message) }),
      );
      const end = (fortune: 'acked' | 'rejected') => {
        for (const trigger of triggers) if (trigger) ledger.end(trigger, fortune, trace.length, clock.elapsedMs);
      };
      try {
        const answers = await store.changeSchedules(changes, nowMs);
        for (const [index, trigger] of triggers.entries()) if (trigger) trigger.isStale = answers[index] === 'stale';
        end('acked');
        return answers;
      } catch (error) {
        end('rejected');
        throw error;
      }
    };
    return new Proxy(store, {
      get: (target, name) => {
        const member = name === 'changeSchedules' ? changeSchedules : target[name as keyof Store];
        return typeof member === 'function' ? member.bind(target) : member;
      },
    });
  }

  #startEngine({ store, clock, sender, number }: Process): Promise<Engine> {
    const randomness = this.#random.fork();
    const note = (event: string) => this.trace.add(`${this.clock.elapsedMs} log ${event}`);
    const log = { info: note, warn: note, error: note };
    return createEngine({
      store,
      clock,
      randomness,
      delivery: sender,
      log,
      settings: this.settings,
      worker: `process-${number}`,
    });
  }

  #bury(process: Process): void {
    process.isDead = true;
    process.driver.die();
    process.sender.die();
    process.clock.die();
    this.#process = undefined;
    this.ledger.giveUp(this.trace.length, this.clock.elapsedMs);
    this.endings.push(this.trace.length);
    if (this.#starting) return; // whoever tries to start it tries again
    this.clock.startTimer(this.#random.int(10, 5_000), () => void this.start());
  }

  #nextFate(): Fate {
    const random = this.#random;
    const { crashPerTransaction, commitMsMax } = this.faults;
    const crashes = random.chance(crashPerTransaction);
    const crash: CrashPoint = crashes ? random.choose(['before', 'inside', 'after commit']) : 'none';
    return {
      commitMs: random.int(0, commitMsMax),
      answerMs: random.int(0, commitMsMax),
      unavailable: this.clock.elapsedMs < this.#unavailableUntilMs,
      crash,
      crashAtStatement: random.int(1, 8),
    };
  }

  #observe(attempt: Attempt): void {
    const sender = this.#process?.sender;
    const about = `${attempt.messageId} retried ${attempt.retried} token ${attempt.claimToken}`;
    if (attempt.outcome) {
      const { kind } = attempt.outcome;
      const answer = attempt.outcome.kind === 'answered' ? ` ${attempt.outcome.status}` : '';
      this.trace.add(`${this.clock.elapsedMs} attempt ended ${kind}${answer} ${about}`);
      if (this.#random.chance(this.faults.crashPerOutcome)) this.crash('between an outcome and its settle');
      return;
    }
    this.startOf.set(attempt, { at: this.trace.length, atMs: this.clock.elapsedMs });
    this.trace.add(`${this.clock.elapsedMs} attempt started ${about} ${attempt.url}`);
    if (!sender || attempt.sender !== sender.number) return;
    this.starts.push({ attempt, atMs: this.clock.elapsedMs, running: [...sender.running.values()] });
    this.#checkLimits([...sender.running.keys()], attempt);
  }

  /** P9: the share of an origin, and of all, is bounded at every moment. */
  #checkLimits(running: Attempt[], { origin, messageId }: Attempt): void {
    const { inFlightMax, inFlightPerOriginMax, inFlightBytesMax } = this.settings;
    if (running.length > inFlightMax) this.violate('P9', `${running.length} attempts in flight`, messageId);
    const toOrigin = running.filter((attempt) => attempt.origin === origin).length;
    if (toOrigin > inFlightPerOriginMax) this.violate('P9', `${toOrigin} attempts in flight to ${origin}`, messageId);
    const bytes = running.map((attempt) => attempt.bodyBytes);
    // One message always fits, however large.
    const bytesBesideLargest = bytes.reduce((sum, each) => sum + each, 0) - Math.max(0, ...bytes);
    if (bytesBesideLargest > inFlightBytesMax) {
      this.violate('P9', `${bytesBesideLargest} bytes in flight beside the largest message`, messageId);
    }
  }

  #note(text: string): void {
    this.disturbances.push(this.clock.elapsedMs);
    this.trace.add(`${this.clock.elapsedMs} ${text}`);
  }
}

/** The server is gone, and with it the answer. */
export class ProcessDied extends Error {}

/** The clock of one process: with it, its timers end. */
class MortalClock implements Clock {
  /** Rejects when the process dies. */
  readonly death: Promise<never>;
  readonly #clock: SimulatedClock;
  #isDead = false;
  #reject: (error: Error) => void = () => {};

  constructor(clock: SimulatedClock) {
    this.#clock = clock;
    this.death = new Promise((_, reject) => {
      this.#reject = reject;
    });
    this.death.catch(() => {}); // heard only while the process starts
  }

  nowMs(): Millis {
    return this.#clock.nowMs();
  }

  get elapsedMs(): Millis {
    return this.#clock.elapsedMs;
  }

  startTimer(delayMs: Millis, task: () => void): Timer {
    return this.#clock.startTimer(delayMs, () => {
      if (!this.#isDead) task();
    });
  }

  die(): void {
    this.#isDead = true;
    this.#reject(new ProcessDied());
  }
}
