/**
 * The simulated world: one database that outlives everything, server processes that are started, killed, drained and
 * started again, the network of endpoints, and clients whose calls are noted in a ledger.
 *
 * There is one process at a time, which has the database for itself; or several workers share it, each with a clock that
 * may be wrong.
 */
import type { Handover } from '../../src/engine/calls/commands.ts';
import type { Engine } from '../../src/engine/commands.ts';
import { createEngine, type Recovery } from '../../src/engine/create.ts';
import type { Claimed, MessageId, Millis } from '../../src/engine/model.ts';
import type { Clock, Machine } from '../../src/engine/ports.ts';
import type { EngineSettings } from '../../src/engine/settings.ts';
import { CommitUnknown, StoreUnavailable } from '../../src/engine/store-errors.ts';
import type { Store, StoreLimits } from '../../src/engine/stores.ts';
import { DatabaseClock } from '../../src/engine/workers/database-clock.ts';
import { SteadyClock } from '../../src/engine/workers/steady-clock.ts';
import { ApiError } from '../../src/protocol/errors.ts';
import type { Driver, Queries } from '../../src/store/driver.ts';
import { anyLogStateOf } from '../../src/store/operations/messages/rows.ts';
import { accountsKnown } from '../support/accounts-known.ts';
import { alteredStore } from '../support/altered-store.ts';
import type { SeededRandom } from '../support/seeded-random.ts';
import { SimulatedClock } from '../support/simulated-clock.ts';
import { type Attempt, SimulatedNetwork, type SimulatedSender } from '../support/simulated-network.ts';
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

/** Puts a bug between the parts, so that a test can prove that the checks would see it. */
export interface Sabotage {
  store?: (store: Store) => Store;
  /** The time that several workers go by. */
  clock?: (machine: Machine) => DatabaseClock;
  /** The time that a process goes by that has the database for itself. */
  time?: (machine: Machine) => Clock;
  /** What the endpoints of workflows leave out: whether their code fits the journal of a run. */
  workflows?: { isUnchecked: true };
}

export interface WorldDeps {
  random: SeededRandom;
  driver: Driver;
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

/** One server process, from its start until it is killed or has drained. */
interface Process {
  worker: string;
  number: number;
  driver: FaultyDriver;
  store: Store;
  sender: SimulatedSender;
  clock: ProcessClock;
  steady: Clock;
  engine?: Engine;
  isDead: boolean;
  /** It was asked to end. */
  isLeaving: boolean;
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
  /** Elapsed times at which anything went wrong that may delay a message. */
  readonly disturbances: Millis[] = [];
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
  #unavailableUntilMs: Millis = 0;
  /** By message key. */
  readonly #latestAttempts = new Map<number, Attempt>();
  /** Elapsed time of the latest claim of each message, by its key. */
  readonly #claimedAt = new Map<number, Millis>();
  readonly #random: SeededRandom;
  readonly #driver: Driver;
  readonly #sabotage: Sabotage;
  /** One slot for each process that is to run. */
  readonly #seats: Seat[];
  /** How long the workers that are started from now on may go without a heartbeat; `undefined`: one has the database for itself. */
  workerTimeoutMs: Millis | undefined;

  constructor({ random, driver, settings, limits = NO_LIMITS, sabotage = {}, workers }: WorldDeps) {
    this.workerTimeoutMs = workers === undefined ? undefined : WORKER_TIMEOUT_MS;
    this.#seats = Array.from({ length: workers ?? 1 }, () => ({ isStarting: false }));
    this.#random = random.fork();
    this.#driver = driver;
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
    return this.#processes.reduce((sum, { driver }) => sum + driver.calls, 0);
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
    this.#count('freezes');
    this.#note(`process ${process.number} is stopped for ${ms} ms`);
    this.endings.push(this.trace.length);
    process.clock.freeze();
    this.clock.startTimer(ms, () => this.#thaw(process));
  }

  #thaw(process: Process): void {
    if (process.isDead || !process.clock.isFrozen) return;
    this.#note(`process ${process.number} goes on`);
    this.endings.push(this.trace.length);
    process.clock.thaw();
  }

  #kill(process: Process, why: string): void {
    if (process.isDead) return;
    this.#count('crashes');
    this.#note(`crash (${why}) of process ${process.number}`);
    this.orphans.push(...process.sender.running.values());
    this.#bury(process);
  }

  /** The process is asked to end, lets running attempts finish for up to `limitMs`, and ends. */
  async shutDown(limitMs: Millis): Promise<void> {
    const process = this.#anyOf(this.#ready);
    if (!process?.engine) return;
    process.isLeaving = true;
    this.#count('drains');
    this.#note(`shutdown of process ${process.number} within ${limitMs} ms`);
    const startedAtMs = this.clock.elapsedMs;
    await process.engine.drain(limitMs);
    if (process.isDead) return;
    this.#note(`process ${process.number} has drained`);
    const tookMs = this.clock.elapsedMs - startedAtMs;
    // After the limit only the releases are left, which an unavailable store may hold up for a moment.
    if (!this.isShared && tookMs > limitMs + 2_000)
      this.violate('P2', `a drain within ${limitMs} ms took ${tookMs} ms`);
    this.#bury(process);
  }

  /** For `ms` the database refuses to write. */
  makeUnavailable(ms: Millis): void {
    this.#note(`store unavailable for ${ms} ms`);
    this.#unavailableUntilMs = Math.max(this.#unavailableUntilMs, this.clock.elapsedMs + ms);
    this.disturbances.push(this.#unavailableUntilMs);
  }

  /** Where several workers share the database, only the machine of one of them is set, within what is allowed. */
  jumpClock(ms: Millis): void {
    if (this.isShared) {
      const process = this.#anyOf(this.#processes);
      if (process) process.clock.skewMs = ms % SKEW_MS_MAX;
      return;
    }
    this.jumps.push({ at: this.trace.length, atMs: this.clock.elapsedMs, fromMs: this.clock.wallMs() });
    this.#note(`wall clock set by ${ms} ms`);
    this.clock.jumpBy(ms);
  }

  /** From now on nothing fails. */
  heal(): void {
    this.#note('healed');
    this.faults = NO_FAULTS;
    this.#unavailableUntilMs = 0;
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

  /** Runs `work` on the database itself, whatever state the server is in. */
  look<Row extends object>(text: string): Promise<Row[]> {
    return this.lookWith((queries) => queries.query<Row>(text));
  }

  /** As `look`, for several questions to one snapshot. */
  lookWith<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    return this.#driver.read(work);
  }

  get #processes(): Process[] {
    return this.#seats.flatMap(({ process }) => process ?? []);
  }

  /** Those that take calls. */
  get #ready(): Process[] {
    return this.#processes.filter(({ engine, clock, isDead }) => engine && !isDead && !clock.isFrozen);
  }

  #anyOf(processes: Process[]): Process | undefined {
    return processes.length > 1 ? this.#random.choose(processes) : processes[0];
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
      this.#note(`process ${process.number} runs`);
    } catch (error) {
      if (!(error instanceof StoreUnavailable || error instanceof ProcessDied)) throw error;
      if (!process.isDead) this.#bury(process);
    }
  }

  #newProcess(): Process {
    this.#count('starts');
    const clock = new ProcessClock(this.clock, this.isShared ? this.#random.int(-SKEW_MS_MAX, SKEW_MS_MAX) : 0);
    // Its time begins with what the wall clock shows now.
    const steady = (this.#sabotage.time ?? ((machine) => new SteadyClock(machine)))(clock);
    const sender = this.network.connect(clock, this.isShared ? this.clock : steady);
    const { number } = sender;
    const driver = new FaultyDriver({
      inner: this.#driver,
      clock: this.clock,
      awake: () => clock.awake(),
      onLogged: (events) => this.#noteLogged(events),
      nextFate: () => this.#nextFate(),
      crash: (where) => this.#kill(process, `${where} of a transaction`),
    });
    const store = this.#witnessed((this.#sabotage.store ?? ((same) => same))(storeOver(driver, this.limits)), number);
    const process: Process = {
      worker: `process-${number}`,
      number,
      driver,
      store,
      sender,
      clock,
      steady,
      isDead: false,
      isLeaving: false,
    };
    return process;
  }

  /** `store`, with a note in the ledger of each trigger that it is asked to save, and a look at each result that it saves. */
  #witnessed(store: Store, number: number): Store {
    const { ledger, trace, clock } = this;
    const settle: Store['messages']['settle'] = async (settlement, nowMs, handoff) => {
      const latest = this.#latestAttempts.get(settlement.key);
      const answer = await store.messages.settle(settlement, nowMs, handoff);
      if (answer.kind === 'saved' && latest && latest.claimToken !== settlement.claimToken) {
        this.violate('P6', 'a result was saved though the message had been claimed anew', latest.messageId);
      }
      return answer;
    };
    const changeSchedules: Store['schedules']['changeSchedules'] = async (changes, nowMs) => {
      ledger.turnedTo = number;
      const triggers = changes.map(({ messages }) =>
        messages.length === 0
          ? undefined
          : ledger.begin(ledger.triggers, { messages: messages.map(({ message }) => message) }),
      );
      const end = (fortune: 'acked' | 'rejected' | 'unknown') => {
        for (const trigger of triggers) if (trigger) ledger.end(trigger, fortune, trace.length, clock.elapsedMs);
      };
      try {
        const answers = await store.schedules.changeSchedules(changes, nowMs);
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
    this.#count('handovers');
    const message = { ...call.claimed.message, key, id: messageId };
    const { deliveredBody: _, ...claimed } = { ...call.claimed, message, claimToken, retried };
    const sentAtMs = this.clock.nowMs();
    const attempt: Attempt = { ...call, messageId, claimToken, retried, claimed, sentAtMs, isHandover: true };
    this.network.attempts.push(attempt);
    this.startOf.set(attempt, { at: this.trace.length, atMs: this.clock.elapsedMs });
    this.trace.add(`${this.clock.elapsedMs} handed over ${messageId} retried ${retried} ${attempt.url}`);
    this.#latestAttempts.set(key, attempt);
  }

  #startEngine({ store, clock: machine, steady, sender, worker }: Process): Promise<Engine> {
    const randomness = this.#random.fork();
    const { workerTimeoutMs: timeoutMs } = this;
    const databaseClock = (this.#sabotage.clock ?? ((same) => new DatabaseClock(same)))(machine);
    const recovery: Recovery | undefined =
      timeoutMs === undefined
        ? undefined
        : { kind: 'heartbeat', clock: databaseClock, timeoutMs, accounts: accountsKnown() };
    const clock = recovery ? databaseClock : steady;
    const note = (event: string) => {
      this.trace.add(`${this.clock.elapsedMs} log ${event} of ${worker}`);
      const counted = COUNTED_EVENTS[event];
      if (counted !== undefined) this.#count(counted);
      if (ENDINGS.has(event)) this.endings.push(this.trace.length);
    };
    const log = { debug: note, info: note, warn: note, error: note };
    return createEngine({
      store,
      clock,
      randomness,
      delivery: sender,
      log,
      settings: this.settings,
      worker,
      ...(recovery ? { recovery } : {}),
    });
  }

  #bury(process: Process): void {
    process.isDead = true;
    this.ends.push({ at: this.trace.length, atMs: this.clock.elapsedMs, nowMs: process.steady.nowMs() });
    process.driver.die();
    process.sender.die();
    process.clock.die();
    const seat = this.#seats.find((each) => each.process === process);
    if (seat) delete seat.process;
    this.ledger.giveUp(process.number, this.trace.length, this.clock.elapsedMs);
    this.endings.push(this.trace.length);
    if (seat && !seat.isStarting) this.clock.startTimer(this.#random.int(10, 5_000), () => void this.#fill(seat)); // otherwise whoever tries to start it tries again
  }

  #nextFate(): Fate {
    const random = this.#random;
    const { crashPerTransaction, commitMsMax } = this.faults;
    const crashes = random.chance(crashPerTransaction);
    const crash: CrashPoint = crashes ? random.choose(['before', 'inside', 'after commit']) : 'none';
    const fate: Fate = {
      commitMs: random.int(0, commitMsMax),
      answerMs: random.int(0, commitMsMax),
      unavailable: this.clock.elapsedMs < this.#unavailableUntilMs,
      losesAnswer: false,
      crash,
      crashAtStatement: random.int(1, 8),
    };
    return this.isShared ? this.#worsened(fate) : fate;
  }

  #worsened(fate: Fate): Fate {
    const random = this.#random;
    const { refusal = 0, lostAnswer = 0, hang = 0 } = this.faults;
    if (random.chance(hang)) {
      const ms = random.int(1_000, HANG_MS_MAX);
      if (random.chance(0.5)) fate.commitMs += ms;
      else fate.answerMs += ms;
      this.#count('hangs');
      this.#note(`a transaction hangs for ${ms} ms`);
      this.disturbances.push(this.clock.elapsedMs + ms);
    }
    if (random.chance(refusal)) {
      fate.unavailable = true;
      this.#note('a transaction is refused');
    }
    if (random.chance(lostAnswer)) {
      fate.losesAnswer = true;
      this.#count('lostAnswers');
      this.#note('the answer of a transaction is lost');
      this.disturbances.push(this.clock.elapsedMs + fate.commitMs + fate.answerMs);
    }
    return fate;
  }

  #count(what: string): void {
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

/** What was refused was not done, unless it is only the answer that was lost. */
function fortuneOf(error: unknown): 'rejected' | 'unknown' {
  return error instanceof CommitUnknown ? 'unknown' : 'rejected';
}
