/**
 * The simulated world: databases that outlive all processes, server processes that are started, killed, drained and
 * restarted, the network of endpoints, and clients whose calls are recorded in a ledger.
 *
 * Either one process at a time uses the database alone, or several workers share it, each with a clock that may be wrong.
 * If there are several databases, each is a cell, and each worker serves all of them.
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
import { alteredStore } from '../support/altered-store.ts';
import { currentAccounts } from '../support/current-accounts.ts';
import type { SeededRandom } from '../support/seeded-random.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { type Attempt, SimulatedNetwork, type SimulatedSender } from '../support/simulated-network.ts';
import { openEngineOverCells } from './cells/engine.ts';
import { storeOver } from './database.ts';
import { type CrashPoint, FaultyDriver, type LoggedEvent, type TransactionFaults } from './faulty-driver.ts';
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
 * Inserts a bug between two components, so that a test can prove that the checks find it. `unguarded`: a store on the same
 * database that treats all projects as placed here.
 */
export interface Sabotage {
  store?: (store: Store, unguarded?: () => Store) => Store;
  /** The clock of several workers that share a database. */
  clock?: (machine: Machine) => DatabaseClock;
  /** The clock of a process that uses the database alone. */
  time?: (machine: Machine) => Clock;
  /** Workflow endpoints do not check that their code fits the journal of a run. */
  workflows?: { isUnchecked: true };
  /** Alters the moves of projects between cells. */
  moves?: (options: MoveProjectOptions) => MoveProjectOptions;
  /** No worker ends the pause of an interrupted move. */
  leavesPauses?: true;
  /** Alters a new cell. */
  cell?: (driver: Driver) => Promise<void>;
}

export interface WorldDeps {
  random: SeededRandom;
  /** The driver of each cell, or of the only database. */
  drivers: readonly Driver[];
  settings: EngineSettings;
  /** Default: none. */
  limits?: StoreLimits;
  sabotage?: Sabotage;
  /** The number of workers that share the database. If absent, one process uses the database alone. */
  workers?: number;
}

/** The start of one attempt, as the network saw it. */
export interface AttemptStart {
  attempt: Attempt;
  atMs: Millis;
  /**
   * The claims in flight at that moment, including the claim of this attempt, of all processes that were neither dead nor
   * stopped.
   */
  running: Claimed[];
  /** Elapsed time when its claim was committed, which may be much earlier in a shared database. */
  claimedAtMs: Millis;
}

/** The probability of each kind of fault per transaction. All zero: the world is healed. */
export interface Faults {
  crashPerTransaction: number;
  crashPerOutcome: number;
  commitMsMax: Millis;
  /** The transaction is rejected before anything is written. */
  rejection?: number;
  /** The transaction is committed, but reported as rejected. */
  lostResponse?: number;
  /** The transaction takes up to `HANG_MS_MAX` before it commits, or before its response arrives. */
  hang?: number;
}

const NO_FAULTS: Faults = { crashPerTransaction: 0, crashPerOutcome: 0, commitMsMax: 1 };
const HANG_MS_MAX: Millis = 30_000;
/** The maximum clock skew of a machine when several workers use the clock of their database. */
const SKEW_MS_MAX: Millis = 90_000;

/** The database of a cell, or the only database. */
export interface Database {
  readonly driver: Driver;
  /** The elapsed time until which the database rejects writes. */
  readOnlyUntilMs: Millis;
  /** The elapsed time until which the database is unreachable. */
  unreachableUntilMs: Millis;
}

/** One server process, from its start until it is killed or has drained. */
interface Process {
  worker: string;
  number: number;
  /** The drivers, by cell. */
  drivers: readonly FaultyDriver[];
  store: Store;
  sender: SimulatedSender;
  clock: ProcessClock;
  steady: Clock;
  engine?: Engine;
  isDead: boolean;
  /** Present while the process shuts down, which takes longer than its limit while a store hangs. */
  shutdown?: TransitionPeriod;
}

/** The elapsed times between which a process may reject calls because it is starting or shutting down. */
interface TransitionPeriod {
  readonly fromMs: Millis;
  untilMs: Millis;
}

/** A place for one process, which is restarted there after its end. */
interface Seat {
  process?: Process;
  isStarting: boolean;
}

/** Log events of a worker that has lost its attempts in flight although its process continues. */
const LOST_WORKER_EVENTS: ReadonlySet<string> = new Set(['fence_closed', 'declared_dead', 'worker_gone']);

/** Log events that are counted, because a simulation of several workers must contain some. */
const COUNTED_EVENTS: Readonly<Record<string, string>> = {
  worker_gone: 'dismissals',
  given_back: 'giveBacks',
  fence_closed: 'fences',
};

/** A started worker serves the first cell at once, and the others as soon as they are open. */
const OPENING_MS: Millis = 5_000;

/** The default heartbeat timeout of a server. */
const WORKER_TIMEOUT_MS: Millis = 15_000;

const NO_LIMITS: StoreLimits = { queuesMax: 0, parallelismMax: 0, messagesPerDayMax: 0, journalBytesMax: 0 };

export const PROJECT = 1;
/** The size of the largest body. */
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
  readonly endPositions: number[] = [];
  /** The end of each process: the position in the trace, the elapsed time, and the time by its own clock. */
  readonly ends: { at: number; atMs: Millis; nowMs: Millis }[] = [];
  /** The times in which a process was starting or shutting down. */
  readonly transitions: TransitionPeriod[] = [];
  /** Elapsed times of all events that may delay a message. */
  readonly disturbances: Millis[] = [];
  /** The elapsed times between which a database had a fault. */
  readonly databaseFaults: { database: Database; fromMs: Millis; untilMs: Millis }[] = [];
  /** Attempts whose process died. Their results arrive late or never. */
  readonly orphans: Claimed[] = [];
  readonly counts: Record<string, number> = { crashes: 0, drains: 0, starts: 0 };
  readonly settings: EngineSettings;
  readonly limits: StoreLimits;
  /** The start of each attempt, with all claims in flight at that moment. */
  readonly starts: AttemptStart[] = [];
  /**
   * Each change of the wall clock: the position in the trace, the elapsed time, and the wall-clock time before the
   * change.
   */
  readonly jumps: { at: number; atMs: Millis; fromMs: Millis }[] = [];
  /** All log entries in the order in which they were committed. */
  readonly logged: LoggedEvent[] = [];
  faults: Faults = NO_FAULTS;
  /** The latest attempt of each message, by its key. */
  readonly #latestAttempts = new Map<number, Attempt>();
  /** Elapsed time of the latest claim of each message, by its key. */
  readonly #claimedAt = new Map<number, Millis>();
  readonly #random: SeededRandom;
  readonly databases: readonly Database[];
  readonly #sabotage: Sabotage;
  /** One for each process. */
  readonly #seats: Seat[];
  /**
   * The heartbeat timeout of workers that are started from now on; `undefined` if one process uses the database alone.
   */
  workerTimeoutMs: Millis | undefined;

  constructor({ random, drivers, settings, limits = NO_LIMITS, sabotage = {}, workers }: WorldDeps) {
    this.workerTimeoutMs = workers === undefined ? undefined : WORKER_TIMEOUT_MS;
    this.#seats = Array.from({ length: workers ?? 1 }, () => ({ isStarting: false }));
    this.#random = random.fork();
    this.databases = drivers.map((driver) => ({ driver, readOnlyUntilMs: 0, unreachableUntilMs: 0 }));
    this.#sabotage = sabotage;
    this.settings = settings;
    this.limits = limits;
    const travel = random.fork();
    this.network = new SimulatedNetwork(this.clock, { travelMs: () => travel.int(1, 30), timeoutMs: 60_000 });
    this.network.onAttempt = (attempt) => this.#observe(attempt);
  }

  /** The engine of a random running process, for the next call; `undefined` if no process runs. */
  get engine(): Engine | undefined {
    return this.#chooseProcess()?.engine;
  }

  get store(): Store | undefined {
    return this.#chooseProcess()?.store;
  }

  /** Whether several workers share the database. */
  get isShared(): boolean {
    return this.workerTimeoutMs !== undefined;
  }

  /** Whether all processes run. */
  get isUp(): boolean {
    return this.#ready.length === this.#seats.length;
  }

  /** Whether `engine` still accepts calls. */
  runs(engine: Engine): boolean {
    return this.#ready.some((process) => process.engine === engine);
  }

  /** The time by the clock of the processes, or of the next process if none runs. */
  get nowMs(): Millis {
    if (this.isShared) return this.clock.nowMs();
    return this.#processes[0]?.steady.nowMs() ?? this.clock.wallMs();
  }

  /** The claim tokens of all attempts in flight. */
  get runningTokens(): ReadonlySet<number> {
    return new Set(this.#running(this.#processes).map(({ claimToken }) => claimToken));
  }

  /** How many calls the running processes have made to the database. */
  get driverCalls(): number {
    return this.#processes.reduce(
      (sum, { drivers }) => sum + drivers.reduce((calls, driver) => calls + driver.calls, 0),
      0,
    );
  }

  /** Starts all processes that do not run; retries until they do. */
  async start(): Promise<void> {
    await Promise.all(this.#seats.map((seat) => this.#startIn(seat)));
  }

  /** Kills a random running process, which is restarted after a while. Returns its name. */
  crash(why: string): string | undefined {
    const process = this.#anyOf(this.#processes);
    if (process) this.#kill(process, why);
    return process?.worker;
  }

  crashAll(why: string): void {
    for (const process of this.#processes) this.#kill(process, why);
  }

  /** Stops a random process, as by SIGSTOP, and continues it after `ms`. */
  freeze(ms: Millis): void {
    const process = this.#anyOf(this.#ready);
    if (!process) return;
    this.countOne('freezes');
    this.note(`process ${process.number} is stopped for ${ms} ms`);
    this.endPositions.push(this.trace.length);
    process.clock.freeze();
    this.clock.startTimer(ms, () => this.#thaw(process));
  }

  #thaw(process: Process): void {
    if (process.isDead || !process.clock.isFrozen) return;
    this.note(`process ${process.number} goes on`);
    this.endPositions.push(this.trace.length);
    process.clock.thaw();
  }

  #kill(process: Process, why: string): void {
    if (process.isDead) return;
    this.countOne('crashes');
    this.note(`crash (${why}) of process ${process.number}`);
    this.orphans.push(...process.sender.running.values());
    this.#endProcess(process);
  }

  /** Shuts a process down: running attempts may finish for up to `limitMs`. */
  async shutDown(limitMs: Millis): Promise<void> {
    const process = this.#anyOf(this.#ready);
    if (!process?.engine) return;
    process.shutdown = this.#noteTransition(Infinity);
    this.countOne('drains');
    this.note(`shutdown of process ${process.number} within ${limitMs} ms`);
    const startedAtMs = this.clock.elapsedMs;
    await process.engine.drain(limitMs);
    if (process.isDead) return;
    this.note(`process ${process.number} has drained`);
    const tookMs = this.clock.elapsedMs - startedAtMs;
    // After the limit only releases remain, which an unavailable store may delay briefly.
    if (!this.isShared && tookMs > limitMs + 2_000)
      this.violate('P2', `a drain within ${limitMs} ms took ${tookMs} ms`);
    this.#endProcess(process);
  }

  /** A random database rejects writes for `ms`. */
  makeUnavailable(ms: Millis): void {
    const database = this.#anyOf(this.databases);
    if (!database) return;
    this.note(`store ${this.#nameOf(database)} unavailable for ${ms} ms`);
    database.readOnlyUntilMs = Math.max(database.readOnlyUntilMs, this.clock.elapsedMs + ms);
    this.#noteDatabaseFault(database, database.readOnlyUntilMs);
  }

  /** A random cell is unreachable for `ms`. */
  makeUnreachable(ms: Millis): void {
    const database = this.#anyOf(this.databases);
    if (!database) return;
    this.countOne('timesAway');
    this.note(`cell ${this.#nameOf(database)} is away for ${ms} ms`);
    database.unreachableUntilMs = Math.max(database.unreachableUntilMs, this.clock.elapsedMs + ms);
    this.#noteDatabaseFault(database, database.unreachableUntilMs);
  }

  /** Sets the wall clock. If several workers share the database, only one machine's clock changes, within the allowed skew. */
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

  /** Ends all faults. */
  heal(): void {
    this.note('healed');
    this.faults = NO_FAULTS;
    for (const database of this.databases) Object.assign(database, { readOnlyUntilMs: 0, unreachableUntilMs: 0 });
    for (const process of this.#processes) this.#thaw(process);
  }

  violate(promise: string, text: string, messageId?: MessageId): void {
    this.trace.add(`VIOLATION of ${promise}: ${text} ${messageId ?? ''}`);
    this.violations.push(messageId === undefined ? { promise, text } : { promise, text, messageId });
  }

  /** Makes a client's call and records its end. An expected rejection is a valid end; any other error is a violation. */
  async call<T>(call: Call, name: string, action: () => Promise<T>, onResponse: (answer: T) => void): Promise<void> {
    try {
      const answer = await action();
      if (this.ledger.end(call, 'acked', this.trace.length, this.clock.elapsedMs)) {
        onResponse(answer);
        this.trace.add(`${this.clock.elapsedMs} ${name} acked`);
      }
    } catch (error) {
      const isRefusal =
        error instanceof StoreUnavailable || (error instanceof ApiError && error.code === 'unavailable');
      if (!isRefusal) this.violate('P11', `${name} failed: ${String(error)}`);
      const result = callResultOf(error);
      this.ledger.end(call, result, this.trace.length, this.clock.elapsedMs);
      this.trace.add(`${this.clock.elapsedMs} ${name} ${result}`);
    }
  }

  /** Sends a request to the server. Throws `ProcessDied` if no process runs, or if it dies before it responds. */
  request<T>(action: (engine: Engine) => Promise<T>): Promise<T> {
    const process = this.#chooseProcess();
    if (!process?.engine) return Promise.reject(new ProcessDied());
    return Promise.race([action(process.engine), process.clock.death]);
  }

  /** Queries all databases directly, whatever the state of the servers. */
  async queryAll<Row extends object>(text: string): Promise<Row[]> {
    return (await this.readAll((queries) => queries.query<Row>(text))).flat();
  }

  /** The sum of the column `count` in the rows of all databases. */
  async count(text: string): Promise<number> {
    return (await this.queryAll<{ count: number }>(text)).reduce((sum, { count }) => sum + count, 0);
  }

  /** Like `queryAll`, for several queries on one snapshot of each database. */
  async readAll<T>(work: (queries: Queries) => Promise<T>): Promise<T[]> {
    const answers: T[] = [];
    for (const { driver } of this.databases) answers.push(await driver.read(work));
    return answers;
  }

  get #processes(): Process[] {
    return this.#seats.flatMap(({ process }) => process ?? []);
  }

  /** The processes that accept calls. */
  get #ready(): Process[] {
    return this.#processes.filter(({ engine, clock, isDead }) => engine && !isDead && !clock.isFrozen);
  }

  #anyOf<T>(all: readonly T[]): T | undefined {
    return all.length > 1 ? this.#random.choose(all) : all[0];
  }

  #chooseProcess(): Process | undefined {
    const process = this.#anyOf(this.#ready);
    if (process) this.ledger.currentProcess = process.number;
    return process;
  }

  #running(processes: Process[]): Claimed[] {
    return processes.flatMap(({ sender, clock }) => (clock.isFrozen ? [] : [...sender.running.values()]));
  }

  async #startIn(seat: Seat): Promise<void> {
    if (seat.isStarting || seat.process) return;
    seat.isStarting = true;
    await this.#tryStart(seat);
    while (!seat.process) {
      await this.clock.delay(this.#random.int(100, 2_000));
      await this.#tryStart(seat);
    }
    seat.isStarting = false;
  }

  /** Leaves the seat empty if the process does not start. */
  async #tryStart(seat: Seat): Promise<void> {
    const process = this.#newProcess();
    seat.process = process;
    try {
      const engine = await Promise.race([this.#startEngine(process), process.clock.death]);
      if (process.isDead) return;
      process.engine = engine;
      this.#noteTransition(OPENING_MS);
      this.note(`process ${process.number} runs`);
    } catch (error) {
      if (!(error instanceof StoreUnavailable || error instanceof ProcessDied)) throw error;
      if (!process.isDead) this.#endProcess(process);
    }
  }

  #newProcess(): Process {
    this.countOne('starts');
    const clock = new ProcessClock(this.clock, this.isShared ? this.#random.int(-SKEW_MS_MAX, SKEW_MS_MAX) : 0);
    // The steady clock starts at the present time of the wall clock.
    const steady = (this.#sabotage.time ?? ((machine) => new SteadyClock(machine)))(clock);
    const sender = this.network.connect(clock, this.isShared ? this.clock : steady);
    const { number } = sender;
    const drivers = this.databases.map(
      (database) =>
        new FaultyDriver({
          inner: database.driver,
          clock: this.clock,
          awake: () => clock.awake(),
          onLogged: (events) => this.#recordEvents(events),
          nextFaults: () => this.#nextFaults(database),
          isUnreachable: () => this.isAway(database),
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
    return this.#withRecording(
      sabotaged(storeOver(driver, this.limits), () => storeOver(driver, this.limits)),
      number,
    );
  }

  /** Wraps `store`: records each trigger that it saves in the ledger, and checks each settle. */
  #withRecording(store: Store, number: number): Store {
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
      ledger.currentProcess = number;
      const triggers = args.changes.map(({ messages }) =>
        messages.length === 0
          ? undefined
          : ledger.start(ledger.triggers, { messages: messages.map(({ message }) => message) }),
      );
      const end = (result: 'acked' | 'rejected' | 'unknown') => {
        for (const trigger of triggers) if (trigger) ledger.end(trigger, result, trace.length, clock.elapsedMs);
      };
      try {
        const answers = await store.schedules.changeSchedules(args);
        for (const [index, trigger] of triggers.entries()) if (trigger) trigger.isStale = answers[index] === 'stale';
        end('acked');
        return answers;
      } catch (error) {
        end(callResultOf(error));
        throw error;
      }
    };
    return alteredStore(store, { changeSchedules, settle });
  }

  /** Records that the server has handed a message to the open call `call`. May be called again for the same message. */
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
      if (LOST_WORKER_EVENTS.has(event)) this.endPositions.push(this.trace.length);
    };
    const log = { debug: note, info: note, warn: note, error: note };
    const needs = { store, randomness, delivery: sender, log, settings: this.settings, worker };
    if (timeoutMs === undefined) return createEngine({ ...needs, clock: steady });
    const shared = { ...needs, clock: databaseClock };
    const recovery = { kind: 'heartbeat' as const, clock: databaseClock, timeoutMs };
    if (drivers.length === 1)
      return createEngine({ ...shared, recovery: { ...recovery, accounts: currentAccounts() } });
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

  #endProcess(process: Process): void {
    process.isDead = true;
    if (process.shutdown) process.shutdown.untilMs = this.clock.elapsedMs;
    this.ends.push({ at: this.trace.length, atMs: this.clock.elapsedMs, nowMs: process.steady.nowMs() });
    for (const driver of process.drivers) driver.die();
    process.sender.die();
    process.clock.die();
    const seat = this.#seats.find((each) => each.process === process);
    if (seat) delete seat.process;
    this.ledger.giveUp(process.number, this.trace.length, this.clock.elapsedMs);
    this.endPositions.push(this.trace.length);
    // While the seat is starting, `#startIn` retries by itself.
    if (seat && !seat.isStarting) this.clock.startTimer(this.#random.int(10, 5_000), () => void this.#startIn(seat));
  }

  #nextFaults(database: Database): TransactionFaults {
    const random = this.#random;
    const { crashPerTransaction, commitMsMax } = this.faults;
    const crashes = random.chance(crashPerTransaction);
    const crash: CrashPoint = crashes ? random.choose(['before', 'inside', 'after commit']) : 'none';
    const fate: TransactionFaults = {
      commitMs: random.int(0, commitMsMax),
      responseMs: random.int(0, commitMsMax),
      unavailable: this.isReadOnly(database),
      losesResponse: false,
      crash,
      crashAtStatement: random.int(1, 8),
    };
    return this.isShared ? this.#withSharedFaults(fate, database) : fate;
  }

  isReadOnly(database: Database): boolean {
    return this.clock.elapsedMs < database.readOnlyUntilMs;
  }

  isAway(database: Database): boolean {
    return this.clock.elapsedMs < database.unreachableUntilMs;
  }

  #withSharedFaults(fate: TransactionFaults, database: Database): TransactionFaults {
    const random = this.#random;
    const { rejection = 0, lostResponse = 0, hang = 0 } = this.faults;
    if (random.chance(hang)) {
      const ms = random.int(1_000, HANG_MS_MAX);
      if (random.chance(0.5)) fate.commitMs += ms;
      else fate.responseMs += ms;
      this.countOne('hangs');
      this.note(`a transaction hangs for ${ms} ms`);
      this.#noteDatabaseFault(database, this.clock.elapsedMs + ms);
    }
    if (random.chance(rejection)) {
      fate.unavailable = true;
      this.note('a transaction is refused');
      this.#noteDatabaseFault(database);
    }
    if (random.chance(lostResponse)) {
      fate.losesResponse = true;
      this.countOne('lostAnswers');
      this.note('the answer of a transaction is lost');
      this.#noteDatabaseFault(database, this.clock.elapsedMs + fate.commitMs + fate.responseMs);
    }
    return fate;
  }

  /** Records a fault of the database from now to `untilMs`. */
  #noteDatabaseFault(database: Database, untilMs = this.clock.elapsedMs): void {
    this.disturbances.push(untilMs);
    this.databaseFaults.push({ database, fromMs: this.clock.elapsedMs, untilMs });
  }

  #noteTransition(ms: Millis): TransitionPeriod {
    const fromMs = this.clock.elapsedMs;
    const period = { fromMs, untilMs: fromMs + ms };
    this.transitions.push(period);
    return period;
  }

  #nameOf(database: Database): number {
    return this.databases.indexOf(database) + 1;
  }

  countOne(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
  }

  #recordEvents(events: readonly LoggedEvent[]): void {
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
      const answer = attempt.outcome.kind === 'responded' ? ` ${attempt.outcome.status}` : '';
      this.trace.add(`${this.clock.elapsedMs} attempt ended ${kind}${answer} ${about}`);
      if (kind === 'interrupted') this.endPositions.push(this.trace.length);
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
    // A start counts from its claim: with several workers, the response to the claim may have taken long.
    const claimedAtMs = this.isShared ? (this.#claimedAt.get(attempt.claimed.message.key) ?? atMs) : atMs;
    this.starts.push({ attempt, atMs, running: this.#running(this.#processes), claimedAtMs });
    this.#checkLimits([...process.sender.running.keys()], attempt);
  }

  /** P9: attempts in flight and their bytes are limited at every moment, per origin and in total. */
  #checkLimits(running: Attempt[], { origin, messageId }: Attempt): void {
    const engines = this.databases.length;
    const [inFlightMax, inFlightPerOriginMax, inFlightBytesMax] = [
      this.settings.inFlightMax * engines,
      this.settings.inFlightPerOriginMax * engines,
      this.settings.inFlightBytesMax * engines,
    ];
    const silentMax = (this.settings.silentMax ?? 8 * this.settings.inFlightMax) * engines;
    const atMs = this.clock.elapsedMs;
    // Older attempts may be silent, and then have no slot.
    const young = running.filter((attempt) => atMs - (this.startOf.get(attempt)?.atMs ?? atMs) < SILENT_AFTER_MS);
    if (young.length > inFlightMax) this.violate('P9', `${young.length} attempts with slots`, messageId);
    if (running.length > inFlightMax + silentMax) this.violate('P9', `${running.length} attempts in flight`, messageId);
    const toOrigin = running.filter((attempt) => attempt.origin === origin).length;
    if (toOrigin > inFlightPerOriginMax) this.violate('P9', `${toOrigin} attempts in flight to ${origin}`, messageId);
    const bytes = running.map((attempt) => attempt.bodyBytes);
    // One message per cell is always allowed, however large it is.
    const largest = bytes.toSorted((a, b) => b - a).slice(0, engines);
    const bytesBesideLargest = [...bytes, ...largest.map((each) => -each)].reduce((sum, each) => sum + each, 0);
    if (bytesBesideLargest > inFlightBytesMax) {
      this.violate('P9', `${bytesBesideLargest} bytes in flight beside the largest message`, messageId);
    }
  }

  /** Records an event that may delay a message. */
  note(text: string): void {
    this.disturbances.push(this.clock.elapsedMs);
    this.trace.add(`${this.clock.elapsedMs} ${text}`);
  }
}

/** A rejected call had no effect, unless only its response was lost. */
function callResultOf(error: unknown): 'rejected' | 'unknown' {
  return error instanceof CommitUnknown ? 'unknown' : 'rejected';
}
