/**
 * The simulated world: databases that outlive everything, server processes that are started, killed, drained and
 * started again, the network of endpoints, and clients whose calls are noted in a ledger.
 *
 * There is one process at a time, which has the database for itself; or several workers share it, each with a clock that
 * may be wrong. Where there are several databases, each is a cell, and each worker serves all of them.
 */

import type { MoveProjectOptions } from '../../src/cells/move/move-project.ts';
import type { Handover } from '../../src/engine/calls/commands.ts';
import type { Engine } from '../../src/engine/commands.ts';
import { createEngine } from '../../src/engine/create.ts';
import { SILENT_AFTER_MS } from '../../src/engine/lanes/in-flight.ts';
import type { CellId, Claimed, MessageId, Millis } from '../../src/engine/model.ts';
import { FIRST_CELL } from '../../src/engine/model.ts';
import type { Clock, Machine } from '../../src/engine/ports.ts';
import type { EngineSettings } from '../../src/engine/settings.ts';
import { CommitUnknown, StoreUnavailable } from '../../src/engine/store-errors.ts';
import type { StoreLimits } from '../../src/engine/stores.ts';
import { DatabaseClock } from '../../src/engine/workers/database-clock.ts';
import { SteadyClock } from '../../src/engine/workers/steady-clock.ts';
import { ApiError } from '../../src/protocol/errors.ts';
import type { Driver, Queries } from '../../src/store/driver.ts';
import { anyLogStateOf } from '../../src/store/operations/messages/rows.ts';
import type { Store } from '../../src/store/store.ts';
import { accountsKnown } from '../support/accounts-known.ts';
import { alteredStore } from '../support/altered-store.ts';
import type { SeededRandom } from '../support/seeded-random.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { type Attempt, SimulatedNetwork, type SimulatedSender } from '../support/simulated-network.ts';
import { openEngineOverCells } from './cells/engine.ts';
import { storeOver } from './database.ts';
import { type CrashPoint, type Fate, FaultyDriver, type LoggedEvent } from './faulty-driver.ts';
import { type Call, Ledger } from './ledger.ts';
import { ProcessClock, ProcessDied } from './process-clock.ts';
import { Trace } from './trace.ts';

/** A broken promise, by its number in docs/architecture.md. */
export interface Violation {
  promise: string;
  text: string;
  messageId?: MessageId;
}

/**
 * Puts a bug between the parts, so that a test can prove that the checks would see it. `unguarded`: a store on the same
 * database, for which all projects are there.
 */
export interface Sabotage {
  store?: (store: Store, unguarded?: () => Store) => Store;
  /** The time that several workers go by. */
  clock?: (machine: Machine) => DatabaseClock;
  /** The time that a process goes by that has the database for itself. */
  time?: (machine: Machine) => Clock;
  /** What the endpoints of workflows leave out: whether their code fits the journal of a run. */
  workflows?: { isUnchecked: true };
  /** What moves projects between cells. */
  moves?: (options: MoveProjectOptions) => MoveProjectOptions;
  /** No worker ends the pause of a move that has stopped in it. */
  leavesPauses?: true;
  /** A new cell. */
  cell?: (driver: Driver) => Promise<void>;
}

export interface WorldDeps {
  random: SeededRandom;
  /** Of each cell, or of the only one. */
  drivers: readonly Driver[];
  settings: EngineSettings;
  /** Default: none. */
  limits?: StoreLimits;
  sabotage?: Sabotage;
  /** How many share the database; absent: one, which has it for itself. */
  workers?: number;
}

/** The start of one attempt, as the network saw it. */
export interface Start {
  attempt: Attempt;
  atMs: Millis;
  /** What was in flight at that moment, this one included, of all processes that were neither dead nor stopped. */
  running: Claimed[];
  /** Elapsed time when its claim was committed, where that may be long before. */
  claimedAtMs: Millis;
}

/** How likely each kind of fault is, a transaction. All zero: the world is healed. */
export interface Faults {
  crashPerTransaction: number;
  crashPerOutcome: number;
  commitMsMax: Millis;
  /** Refused, with nothing written. */
  refusal?: number;
  /** Committed, and answered as if it were refused. */
  lostAnswer?: number;
  /** Takes up to `HANG_MS_MAX` before it is made, or until it is answered. */
  hang?: number;
}

const NO_FAULTS: Faults = { crashPerTransaction: 0, crashPerOutcome: 0, commitMsMax: 1 };
const HANG_MS_MAX: Millis = 30_000;
/** How wrong the clock of a machine is at most, where several workers go by that of their database. */
const SKEW_MS_MAX: Millis = 90_000;

/** A cell, or the only one. */
export interface Database {
  readonly driver: Driver;
  /** It refuses to write until then. */
  readOnlyUntilMs: Millis;
  /** Nobody reaches it until then. */
  awayUntilMs: Millis;
}

/** One server process, from its start until it is killed or has drained. */
interface Process {
  worker: string;
  number: number;
  /** By cell. */
  drivers: readonly FaultyDriver[];
  store: Store;
  sender: SimulatedSender;
  clock: ProcessClock;
  steady: Clock;
  engine?: Engine;
  isDead: boolean;
  /** Since it was asked to end. That takes longer than it was told to while a store hangs. */
  leaving?: Coming;
}

/** Elapsed times between which a process may refuse what others would not. */
interface Coming {
  readonly fromMs: Millis;
  untilMs: Millis;
}

/** A slot for a process, and the one that has it. */
interface Seat {
  process?: Process;
  isStarting: boolean;
}

/** What is logged when a worker has lost what it had in flight, though its process goes on. */
const ENDINGS: ReadonlySet<string> = new Set(['fence_closed', 'declared_dead', 'worker_gone']);

/** What is logged of which there is to be some in a simulation of several workers. */
const COUNTED_EVENTS: Readonly<Record<string, string>> = {
  worker_gone: 'dismissals',
  given_back: 'giveBacks',
  fence_closed: 'fences',
};

/** A worker that has begun serves the first cell at once, and the others as soon as they are open. */
const OPENING_MS: Millis = 5_000;

/** As by default. */
const WORKER_TIMEOUT_MS: Millis = 15_000;

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
  /** The end of each process: the position in the trace, the elapsed time, and the time that it went by. */
  readonly ends: { at: number; atMs: Millis; nowMs: Millis }[] = [];
  /** Elapsed times between which a process had just begun to serve, or was asked to end and had not ended yet. */
  readonly comings: Coming[] = [];
  /** Elapsed times at which anything went wrong that may delay a message. */
  readonly disturbances: Millis[] = [];
  /** What was wrong with one of the databases, and when. */
  readonly troubles: { database: Database; fromMs: Millis; untilMs: Millis }[] = [];
  /** Attempts whose process died: their results come late, if at all. */
  readonly orphans: Claimed[] = [];
  readonly counts: Record<string, number> = { crashes: 0, drains: 0, starts: 0 };
  readonly settings: EngineSettings;
  readonly limits: StoreLimits;
  /** What was in flight when each attempt started, itself included. */
  readonly starts: Start[] = [];
  /** Each time the wall clock was set: the position in the trace, the elapsed time, and what it showed before. */
  readonly jumps: { at: number; atMs: Millis; fromMs: Millis }[] = [];
  /** All log entries in the order in which they were committed. */
  readonly logged: LoggedEvent[] = [];
  faults: Faults = NO_FAULTS;
  /** By message key. */
  readonly #latestAttempts = new Map<number, Attempt>();
  /** Elapsed time of the latest claim of each message, by its key. */
  readonly #claimedAt = new Map<number, Millis>();
  readonly #random: SeededRandom;
  readonly databases: readonly Database[];
  readonly #sabotage: Sabotage;
  /** One slot for each process that is to run. */
  readonly #seats: Seat[];
  /** How long the workers that are started from now on may go without a heartbeat; `undefined`: one has the database for itself. */
  workerTimeoutMs: Millis | undefined;

  constructor({ random, drivers, settings, limits = NO_LIMITS, sabotage = {}, workers }: WorldDeps) {
    this.workerTimeoutMs = workers === undefined ? undefined : WORKER_TIMEOUT_MS;
    this.#seats = Array.from({ length: workers ?? 1 }, () => ({ isStarting: false }));
    this.#random = random.fork();
    this.databases = drivers.map((driver) => ({ driver, readOnlyUntilMs: 0, awayUntilMs: 0 }));
    this.#sabotage = sabotage;
    this.settings = settings;
    this.limits = limits;
    const travel = random.fork();
    this.network = new SimulatedNetwork(this.clock, { travelMs: () => travel.int(1, 30), timeoutMs: 60_000 });
    this.network.onAttempt = (attempt) => this.#observe(attempt);
  }

  /** The engine that takes a call now, any of those that run; `undefined` while there is none. */
  get engine(): Engine | undefined {
    return this.#turnTo()?.engine;
  }

  get store(): Store | undefined {
    return this.#turnTo()?.store;
  }

  /** Whether several workers share the database. */
  get isShared(): boolean {
    return this.workerTimeoutMs !== undefined;
  }

  /** Whether all processes run that are to. */
  get isUp(): boolean {
    return this.#ready.length === this.#seats.length;
  }

  /** Whether `engine` still takes calls. */
  runs(engine: Engine): boolean {
    return this.#ready.some((process) => process.engine === engine);
  }

  /** What the processes go by, or the next one will. */
  get nowMs(): Millis {
    if (this.isShared) return this.clock.nowMs();
    return this.#processes[0]?.steady.nowMs() ?? this.clock.wallMs();
  }

  /** Claims that some process is making an attempt for. */
  get runningTokens(): ReadonlySet<number> {
    return new Set(this.#running(this.#processes).map(({ claimToken }) => claimToken));
  }

  /** Calls of the running processes to the database so far. */
  get driverCalls(): number {
    return this.#processes.reduce(
      (sum, { drivers }) => sum + drivers.reduce((calls, driver) => calls + driver.calls, 0),
      0,
    );
  }

  /** Starts what does not run, again and again until it stands. */
  async start(): Promise<void> {
    await Promise.all(this.#seats.map((seat) => this.#fill(seat)));
  }

  /** A process dies now, any of those that run. The next one starts after a while. Answers who died. */
  crash(why: string): string | undefined {
    const process = this.#anyOf(this.#processes);
    if (process) this.#kill(process, why);
    return process?.worker;
  }

  crashAll(why: string): void {
    for (const process of this.#processes) this.#kill(process, why);
  }

  /** A process stops, as by SIGSTOP, and goes on after `ms`. */
  freeze(ms: Millis): void {
    const process = this.#anyOf(this.#ready);
    if (!process) return;
    this.countOne('freezes');
    this.note(`process ${process.number} is stopped for ${ms} ms`);
    this.endings.push(this.trace.length);
    process.clock.freeze();
    this.clock.startTimer(ms, () => this.#thaw(process));
  }

  #thaw(process: Process): void {
    if (process.isDead || !process.clock.isFrozen) return;
    this.note(`process ${process.number} goes on`);
    this.endings.push(this.trace.length);
    process.clock.thaw();
  }

  #kill(process: Process, why: string): void {
    if (process.isDead) return;
    this.countOne('crashes');
    this.note(`crash (${why}) of process ${process.number}`);
    this.orphans.push(...process.sender.running.values());
    this.#bury(process);
  }

  /** The process is asked to end, lets running attempts finish for up to `limitMs`, and ends. */
  async shutDown(limitMs: Millis): Promise<void> {
    const process = this.#anyOf(this.#ready);
    if (!process?.engine) return;
    process.leaving = this.#noteComing(Infinity);
    this.countOne('drains');
    this.note(`shutdown of process ${process.number} within ${limitMs} ms`);
    const startedAtMs = this.clock.elapsedMs;
    await process.engine.drain(limitMs);
    if (process.isDead) return;
    this.note(`process ${process.number} has drained`);
    const tookMs = this.clock.elapsedMs - startedAtMs;
    // After the limit only the releases are left, which an unavailable store may hold up for a moment.
    if (!this.isShared && tookMs > limitMs + 2_000)
      this.violate('P2', `a drain within ${limitMs} ms took ${tookMs} ms`);
    this.#bury(process);
  }

  /** For `ms` the database refuses to write; of several cells, any of them. */
  makeUnavailable(ms: Millis): void {
    const database = this.#anyOf(this.databases);
    if (!database) return;
    this.note(`store ${this.#nameOf(database)} unavailable for ${ms} ms`);
    database.readOnlyUntilMs = Math.max(database.readOnlyUntilMs, this.clock.elapsedMs + ms);
    this.#noteTrouble(database, database.readOnlyUntilMs);
  }

  /** For `ms` nobody reaches a cell, any of them. */
  takeAway(ms: Millis): void {
    const database = this.#anyOf(this.databases);
    if (!database) return;
    this.countOne('timesAway');
    this.note(`cell ${this.#nameOf(database)} is away for ${ms} ms`);
    database.awayUntilMs = Math.max(database.awayUntilMs, this.clock.elapsedMs + ms);
    this.#noteTrouble(database, database.awayUntilMs);
  }

  /** Where several workers share the database, only the machine of one of them is set, within what is allowed. */
  jumpClock(ms: Millis): void {
    if (this.isShared) {
      const process = this.#anyOf(this.#processes);
      if (process) process.clock.skewMs = ms % SKEW_MS_MAX;
      return;
    }
    this.jumps.push({ at: this.trace.length, atMs: this.clock.elapsedMs, fromMs: this.clock.wallMs() });
    this.note(`wall clock set by ${ms} ms`);
    this.clock.jumpBy(ms);
  }

  /** From now on nothing fails. */
  heal(): void {
    this.note('healed');
    this.faults = NO_FAULTS;
    for (const database of this.databases) Object.assign(database, { readOnlyUntilMs: 0, awayUntilMs: 0 });
    for (const process of this.#processes) this.#thaw(process);
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
      const fortune = fortuneOf(error);
      this.ledger.end(call, fortune, this.trace.length, this.clock.elapsedMs);
      this.trace.add(`${this.clock.elapsedMs} ${name} ${fortune}`);
    }
  }

  /** What somebody asks of the server. Throws `ProcessDied` when none runs, or when it ends before it has answered. */
  request<T>(action: (engine: Engine) => Promise<T>): Promise<T> {
    const process = this.#turnTo();
    if (!process?.engine) return Promise.reject(new ProcessDied());
    return Promise.race([action(process.engine), process.clock.death]);
  }

  /** The rows of all databases, whatever state the servers are in. */
  async look<Row extends object>(text: string): Promise<Row[]> {
    return (await this.lookWith((queries) => queries.query<Row>(text))).flat();
  }

  /** The sum of the column `count` in the rows of all databases. */
  async count(text: string): Promise<number> {
    return (await this.look<{ count: number }>(text)).reduce((sum, { count }) => sum + count, 0);
  }

  /** As `look`, for several questions to one snapshot of each database. */
  async lookWith<T>(work: (queries: Queries) => Promise<T>): Promise<T[]> {
    const answers: T[] = [];
    for (const { driver } of this.databases) answers.push(await driver.read(work));
    return answers;
  }

  get #processes(): Process[] {
    return this.#seats.flatMap(({ process }) => process ?? []);
  }

  /** Those that take calls. */
  get #ready(): Process[] {
    return this.#processes.filter(({ engine, clock, isDead }) => engine && !isDead && !clock.isFrozen);
  }

  #anyOf<T>(all: readonly T[]): T | undefined {
    return all.length > 1 ? this.#random.choose(all) : all[0];
  }

  #turnTo(): Process | undefined {
    const process = this.#anyOf(this.#ready);
    if (process) this.ledger.turnedTo = process.number;
    return process;
  }

  #running(processes: Process[]): Claimed[] {
    return processes.flatMap(({ sender, clock }) => (clock.isFrozen ? [] : [...sender.running.values()]));
  }

  async #fill(seat: Seat): Promise<void> {
    if (seat.isStarting || seat.process) return;
    seat.isStarting = true;
    await this.#tryStart(seat);
    while (!seat.process) {
      await this.clock.delay(this.#random.int(100, 2_000));
      await this.#tryStart(seat);
    }
    seat.isStarting = false;
  }

  /** Leaves the seat empty when the process did not come to run. */
  async #tryStart(seat: Seat): Promise<void> {
    const process = this.#newProcess();
    seat.process = process;
    try {
      const engine = await Promise.race([this.#startEngine(process), process.clock.death]);
      if (process.isDead) return;
      process.engine = engine;
      this.#noteComing(OPENING_MS);
      this.note(`process ${process.number} runs`);
    } catch (error) {
      if (!(error instanceof StoreUnavailable || error instanceof ProcessDied)) throw error;
      if (!process.isDead) this.#bury(process);
    }
  }

  #newProcess(): Process {
    this.countOne('starts');
    const clock = new ProcessClock(this.clock, this.isShared ? this.#random.int(-SKEW_MS_MAX, SKEW_MS_MAX) : 0);
    // Its time begins with what the wall clock shows now.
    const steady = (this.#sabotage.time ?? ((machine) => new SteadyClock(machine)))(clock);
    const sender = this.network.connect(clock, this.isShared ? this.clock : steady);
    const { number } = sender;
    const drivers = this.databases.map(
      (database) =>
        new FaultyDriver({
          inner: database.driver,
          clock: this.clock,
          awake: () => clock.awake(),
          onLogged: (events) => this.#noteLogged(events),
          nextFate: () => this.#nextFate(database),
          isAway: () => this.isAway(database),
          crash: (where) => this.#kill(process, `${where} of a transaction`),
        }),
    );
    const store = this.#storeOver(drivers[0] as FaultyDriver, number);
    const process: Process = {
      worker: `process-${number}`,
      number,
      drivers,
      store,
      sender,
      clock,
      steady,
      isDead: false,
    };
    return process;
  }

  #storeOver(driver: FaultyDriver, number: number): Store {
    const { store: sabotaged = (same) => same } = this.#sabotage;
    return this.#witnessed(
      sabotaged(storeOver(driver, this.limits), () => storeOver(driver, this.limits)),
      number,
    );
  }

  /** `store`, with a note in the ledger of each trigger that it is asked to save, and a look at each result that it saves. */
  #witnessed(store: Store, number: number): Store {
    const { ledger, trace, clock } = this;
    const settle: Store['messages']['settle'] = async (args) => {
      const { settlement } = args;
      const latest = this.#latestAttempts.get(settlement.key);
      const answer = await store.messages.settle(args);
      if (answer.kind === 'saved' && latest && latest.claimToken !== settlement.claimToken) {
        this.violate('P6', 'a result was saved though the message had been claimed anew', latest.messageId);
      }
      return answer;
    };
    const changeSchedules: Store['schedules']['changeSchedules'] = async (args) => {
      ledger.turnedTo = number;
      const triggers = args.changes.map(({ messages }) =>
        messages.length === 0
          ? undefined
          : ledger.begin(ledger.triggers, { messages: messages.map(({ message }) => message) }),
      );
      const end = (fortune: 'acked' | 'rejected' | 'unknown') => {
        for (const trigger of triggers) if (trigger) ledger.end(trigger, fortune, trace.length, clock.elapsedMs);
      };
      try {
        const answers = await store.schedules.changeSchedules(args);
        for (const [index, trigger] of triggers.entries()) if (trigger) trigger.isStale = answers[index] === 'stale';
        end('acked');
        return answers;
      } catch (error) {
        end(fortuneOf(error));
        throw error;
      }
    };
    return alteredStore(store, { changeSchedules, settle });
  }

  /** The server has handed a message to the call that `call` is. It may say so more than once. */
  noteHandover(call: Attempt, { messageId, key, claimToken, retried }: Handover): void {
    if (this.network.attempts.some((attempt) => attempt.claimToken === claimToken)) return;
    this.countOne('handovers');
    const message = { ...call.claimed.message, key, id: messageId };
    const { deliveredBody: _, ...claimed } = { ...call.claimed, message, claimToken, retried };
    const sentAtMs = this.clock.nowMs();
    const attempt: Attempt = { ...call, messageId, claimToken, retried, claimed, sentAtMs, isHandover: true };
    this.network.attempts.push(attempt);
    this.startOf.set(attempt, { at: this.trace.length, atMs: this.clock.elapsedMs });
    this.trace.add(`${this.clock.elapsedMs} handed over ${messageId} retried ${retried} ${attempt.url}`);
    this.#latestAttempts.set(key, attempt);
  }

  #startEngine({ store, drivers, number, clock: machine, steady, sender, worker }: Process): Promise<Engine> {
    const randomness = this.#random.fork();
    const { workerTimeoutMs: timeoutMs } = this;
    const databaseClock = (this.#sabotage.clock ?? ((same) => new DatabaseClock(same)))(machine);
    const note = (event: string) => {
      this.trace.add(`${this.clock.elapsedMs} log ${event} of ${worker}`);
      const counted = COUNTED_EVENTS[event];
      if (counted !== undefined) this.countOne(counted);
      if (ENDINGS.has(event)) this.endings.push(this.trace.length);
    };
    const log = { debug: note, info: note, warn: note, error: note };
    const needs = { store, randomness, delivery: sender, log, settings: this.settings, worker };
    if (timeoutMs === undefined) return createEngine({ ...needs, clock: steady });
    const shared = { ...needs, clock: databaseClock };
    const recovery = { kind: 'heartbeat' as const, clock: databaseClock, timeoutMs };
    if (drivers.length === 1) return createEngine({ ...shared, recovery: { ...recovery, accounts: accountsKnown() } });
    const driverOf = (cellId: CellId) => drivers[cellId - FIRST_CELL] as FaultyDriver;
    return openEngineOverCells(
      { ...shared, recovery, machine },
      {
        driverOf,
        storeOf: (cellId) => this.#storeOver(driverOf(cellId), number),
        endsPauses: !this.#sabotage.leavesPauses,
      },
    );
  }

  #bury(process: Process): void {
    process.isDead = true;
    if (process.leaving) process.leaving.untilMs = this.clock.elapsedMs;
    this.ends.push({ at: this.trace.length, atMs: this.clock.elapsedMs, nowMs: process.steady.nowMs() });
    for (const driver of process.drivers) driver.die();
    process.sender.die();
    process.clock.die();
    const seat = this.#seats.find((each) => each.process === process);
    if (seat) delete seat.process;
    this.ledger.giveUp(process.number, this.trace.length, this.clock.elapsedMs);
    this.endings.push(this.trace.length);
    if (seat && !seat.isStarting) this.clock.startTimer(this.#random.int(10, 5_000), () => void this.#fill(seat)); // otherwise whoever tries to start it tries again
  }

  #nextFate(database: Database): Fate {
    const random = this.#random;
    const { crashPerTransaction, commitMsMax } = this.faults;
    const crashes = random.chance(crashPerTransaction);
    const crash: CrashPoint = crashes ? random.choose(['before', 'inside', 'after commit']) : 'none';
    const fate: Fate = {
      commitMs: random.int(0, commitMsMax),
      answerMs: random.int(0, commitMsMax),
      unavailable: this.isReadOnly(database),
      losesAnswer: false,
      crash,
      crashAtStatement: random.int(1, 8),
    };
    return this.isShared ? this.#worsened(fate, database) : fate;
  }

  isReadOnly(database: Database): boolean {
    return this.clock.elapsedMs < database.readOnlyUntilMs;
  }

  isAway(database: Database): boolean {
    return this.clock.elapsedMs < database.awayUntilMs;
  }

  #worsened(fate: Fate, database: Database): Fate {
    const random = this.#random;
    const { refusal = 0, lostAnswer = 0, hang = 0 } = this.faults;
    if (random.chance(hang)) {
      const ms = random.int(1_000, HANG_MS_MAX);
      if (random.chance(0.5)) fate.commitMs += ms;
      else fate.answerMs += ms;
      this.countOne('hangs');
      this.note(`a transaction hangs for ${ms} ms`);
      this.#noteTrouble(database, this.clock.elapsedMs + ms);
    }
    if (random.chance(refusal)) {
      fate.unavailable = true;
      this.note('a transaction is refused');
      this.#noteTrouble(database);
    }
    if (random.chance(lostAnswer)) {
      fate.losesAnswer = true;
      this.countOne('lostAnswers');
      this.note('the answer of a transaction is lost');
      this.#noteTrouble(database, this.clock.elapsedMs + fate.commitMs + fate.answerMs);
    }
    return fate;
  }

  /** Something is wrong with the database, up to a time. Default: now. */
  #noteTrouble(database: Database, untilMs = this.clock.elapsedMs): void {
    this.disturbances.push(untilMs);
    this.troubles.push({ database, fromMs: this.clock.elapsedMs, untilMs });
  }

  #noteComing(ms: Millis): Coming {
    const fromMs = this.clock.elapsedMs;
    const coming = { fromMs, untilMs: fromMs + ms };
    this.comings.push(coming);
    return coming;
  }

  #nameOf(database: Database): number {
    return this.databases.indexOf(database) + 1;
  }

  countOne(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
  }

  #noteLogged(events: readonly LoggedEvent[]): void {
    this.logged.push(...events);
    for (const { messageKey, state } of events) {
      if (anyLogStateOf(state) === 'ACTIVE') this.#claimedAt.set(messageKey, this.clock.elapsedMs);
    }
  }

  #observe(attempt: Attempt): void {
    const process = this.#processes.find(({ number }) => number === attempt.sender);
    const about = `${attempt.messageId} retried ${attempt.retried} token ${attempt.claimToken}`;
    if (attempt.outcome) {
      const { kind } = attempt.outcome;
      const answer = attempt.outcome.kind === 'answered' ? ` ${attempt.outcome.status}` : '';
      this.trace.add(`${this.clock.elapsedMs} attempt ended ${kind}${answer} ${about}`);
      if (kind === 'interrupted') this.endings.push(this.trace.length);
      if (process && this.#random.chance(this.faults.crashPerOutcome)) {
        this.#kill(process, 'between an outcome and its settle');
      }
      return;
    }
    this.startOf.set(attempt, { at: this.trace.length, atMs: this.clock.elapsedMs });
    this.trace.add(`${this.clock.elapsedMs} attempt started ${about} ${attempt.url}`);
    this.#latestAttempts.set(attempt.claimed.message.key, attempt);
    if (!process) return;
    const atMs = this.clock.elapsedMs;
    // A start is counted when it is claimed; how long the worker waited for the answer nobody else knows.
    const claimedAtMs = this.isShared ? (this.#claimedAt.get(attempt.claimed.message.key) ?? atMs) : atMs;
    this.starts.push({ attempt, atMs, running: this.#running(this.#processes), claimedAtMs });
    this.#checkLimits([...process.sender.running.keys()], attempt);
  }

  /** P9: the share of an origin, and of all, is bounded at every moment. */
  #checkLimits(running: Attempt[], { origin, messageId }: Attempt): void {
    const engines = this.databases.length;
    const [inFlightMax, inFlightPerOriginMax, inFlightBytesMax] = [
      this.settings.inFlightMax * engines,
      this.settings.inFlightPerOriginMax * engines,
      this.settings.inFlightBytesMax * engines,
    ];
    const silentMax = (this.settings.silentMax ?? 8 * this.settings.inFlightMax) * engines;
    const atMs = this.clock.elapsedMs;
    // Those that are older may be silent, and have no slot then.
    const young = running.filter((attempt) => atMs - (this.startOf.get(attempt)?.atMs ?? atMs) < SILENT_AFTER_MS);
    if (young.length > inFlightMax) this.violate('P9', `${young.length} attempts with slots`, messageId);
    if (running.length > inFlightMax + silentMax) this.violate('P9', `${running.length} attempts in flight`, messageId);
    const toOrigin = running.filter((attempt) => attempt.origin === origin).length;
    if (toOrigin > inFlightPerOriginMax) this.violate('P9', `${toOrigin} attempts in flight to ${origin}`, messageId);
    const bytes = running.map((attempt) => attempt.bodyBytes);
    // One message always fits, however large; of each cell.
    const largest = bytes.toSorted((a, b) => b - a).slice(0, engines);
    const bytesBesideLargest = [...bytes, ...largest.map((each) => -each)].reduce((sum, each) => sum + each, 0);
    if (bytesBesideLargest > inFlightBytesMax) {
      this.violate('P9', `${bytesBesideLargest} bytes in flight beside the largest message`, messageId);
    }
  }

  /** Something happens that may delay a message. */
  note(text: string): void {
    this.disturbances.push(this.clock.elapsedMs);
    this.trace.add(`${this.clock.elapsedMs} ${text}`);
  }
}

/** What was refused was not done, unless it is only the answer that was lost. */
function fortuneOf(error: unknown): 'rejected' | 'unknown' {
  return error instanceof CommitUnknown ? 'unknown' : 'rejected';
}
