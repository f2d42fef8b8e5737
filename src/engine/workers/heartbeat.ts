/**
 * Tells the other workers on the database that this one lives, and looks after what the dead have left. Whoever cannot
 * heartbeat in time is declared dead by the others; so a worker that cannot be sure of its heartbeats gives up by itself before
 * (`Fence`).
 *
 * Each heartbeat also brings the database's time and makes good what notifications may have lost.
 */
import { Alarm } from '../alarm.ts';
import type { OriginLine } from '../lanes/origin-line.ts';
import type { ClaimRef, ClaimToken, Millis, WorkerId } from '../model.ts';
import type { EventLog, Randomness, Timer } from '../ports.ts';
import { StoreUnavailable } from '../store-errors.ts';
import type { MessageStore } from '../stores.ts';
import type { DatabaseClock } from './database-clock.ts';
import { type Fence, HeartbeatFence } from './fence.ts';
import type { HeartbeatAnswer, WorkerStore } from './store.ts';

/** Heartbeats of which at least one must be answered in time. */
const BEATS_PER_TIMEOUT = 3;
/** Share of the timeout after which a worker without an answered heartbeat is to have let go of everything. */
const FENCE_SHARE = 0.8;
/** Share of the timeout after which a heartbeat that failed is tried again. */
const RETRY_SHARE = 1 / 15;
/** Heartbeats between two looks for claims that were left over, when nothing gives reason for one. */
const LOOK_EVERY = 3;
/** Claims released in one transaction: a few milliseconds of work. */
const PIECE = 200;
/** Lines that are read with a heartbeat when none may be lost: what others have no room for waits no longer than a heartbeat. */
const LINES_PIECE = 500;
/** A heartbeat that takes no longer tells the time well enough to begin with. */
const QUICK_MS = 500;
const QUICK_TRIES = 3;
/** How long an end waits to be noted; when it is not, the others find out by the missing heartbeats. */
const LEAVE_WAIT_MS = 1_000;

export interface HeartbeatDeps {
  store: { workers: Omit<WorkerStore, 'workersBehind'>; messages: Pick<MessageStore, 'release' | 'waitingLines'> };
  clock: DatabaseClock;
  randomness: Randomness;
  log: EventLog;
  worker: WorkerId;
  /** Without a heartbeat for so long, the others may declare this worker dead. */
  timeoutMs: Millis;
  accounts: SharedAccounts;
}

/** Projects, tokens and signing keys, as this worker has them in memory and others may change them. */
export interface SharedAccounts {
  /** Of what is in memory. */
  readonly version: number;
  refresh(): Promise<void>;
  /** The store had `version` when it was asked; until `untilMs`, as `elapsedMs` counts, this worker is not taken for dead. */
  noteNewest(version: number, untilMs: Millis): void;
  /** The store could not be asked, or read. */
  noteUnknown(error: Error): void;
}

/** The rest of the worker, as far as it must hear of a heartbeat. */
export interface Listeners {
  /** Has the slots for attempts. */
  dispatcher: {
    holds(claimToken: ClaimToken): boolean;
    interrupt(): void;
    noteDue(dueAtMs: Millis): void;
    noteWaitingLine(line: OriginLine): void;
    wake(): void;
  };
  noteSchedule(atMs: Millis): void;
  noteDeadline(atMs: Millis): void;
  /** Somebody is gone who may have been doing something in pieces, such as the deletion of a queue. */
  noteDeath(): void;
}

export class Heartbeat {
  readonly #deps: HeartbeatDeps;
  readonly #fence: HeartbeatFence;
  #listeners: Listeners | undefined;
  readonly #alarm: Alarm;
  readonly #fenceAlarm: Alarm;
  #isLeaving = false;
  #stopped = false;
  /** The heartbeat under way. */
  #sending: Promise<void> | undefined;
  /** What follows from a heartbeat and is under way still. */
  #caring: Promise<void> | undefined;
  #sent = 0;
  #others: readonly WorkerId[] = [];
  /** The others, or whoever changes accounts, wait for the next heartbeat. */
  #isSendingDue = false;
  /** Nobody may be reading the lines of some origins. */
  #linesAreLost = false;
  /** The last line of the piece that was read last, if there are more. */
  #lastLine: OriginLine | undefined;
  /** Something may have been saved of which this worker was told that it was not. */
  #isCommitUnknown = false;
  /** Claims in this worker's name that it knew nothing of when it looked last. */
  #unknownClaims: ReadonlySet<ClaimToken> = new Set();

  constructor(deps: HeartbeatDeps) {
    this.#deps = deps;
    this.#fence = new HeartbeatFence(deps.clock, deps.timeoutMs * FENCE_SHARE);
    this.#alarm = new Alarm(deps.clock, () => this.#beginSending());
    this.#fenceAlarm = new Alarm(deps.clock, () => this.#lookAtFence());
  }

  get fence(): Fence {
    return this.#fence;
  }

  /** The first heartbeat, and the care for what the dead have left (P7). Throws `StoreUnavailable`. */
  async begin(): Promise<void> {
    const answer = await this.#sendFirst();
    this.#others = answer.others;
    await this.#expire();
    const { accounts } = this.#deps;
    // What was read before the heartbeat may be older than its version.
    for (let { accountsVersion } = answer; accountsVersion !== accounts.version; ) {
      await accounts.refresh();
      ({ accountsVersion } = await this.#send());
    }
  }

  /** From now on it sends heartbeats, and `listeners` hear what each heartbeat brings. */
  start(listeners: Listeners): void {
    this.#listeners = listeners;
    this.#setFenceAlarm();
    this.#alarm.setIn(this.#pauseMs());
  }

  /** It is not known whether something was saved: the next looks will show. */
  noteCommitUnknown(): void {
    this.#isCommitUnknown = true;
    this.#linesAreLost = true;
  }

  /** Others have changed accounts: the next heartbeats read them, and say so. */
  noteAccounts(): void {
    if (this.#listeners) this.#sendSoon();
  }

  /** This worker claims nothing any more; the others are to read the lines that it has read. */
  noteDraining(): void {
    this.#isLeaving = true;
    if (this.#listeners && !this.#sending) this.#alarm.setIn(0);
  }

  /** No attempt is left. Resolves when the others will hear of it, or after a moment. */
  async stop(): Promise<void> {
    const { store, clock, worker } = this.#deps;
    this.#stopped = true;
    this.#alarm.cancel();
    this.#fenceAlarm.cancel();
    const left = Promise.all([this.#sending, this.#caring])
      .then(() => store.workers.leave({ worker }))
      .catch((error: unknown) => {
        if (!(error instanceof StoreUnavailable)) throw error;
      });
    let timer: Timer | undefined;
    const impatience = new Promise<void>((resolve) => {
      timer = clock.startTimer(LEAVE_WAIT_MS, resolve);
    });
    await Promise.race([left, impatience]);
    timer?.cancel();
  }

  async #send(): Promise<HeartbeatAnswer> {
    const { store, clock, worker, timeoutMs, accounts } = this.#deps;
    const begunAtMs = clock.elapsedMs;
    const known = this.#sent > 0 && { known: { nowMs: clock.nowMs(), leadMs: clock.leadMs } };
    const { version: accountsVersion } = accounts;
    const answer = await store.workers.heartbeat({
      worker,
      timeoutMs,
      isLeaving: this.#isLeaving,
      accountsVersion,
      ...known,
    });
    clock.correct(answer.wallMs, begunAtMs, answer.leadMs);
    this.#fence.noteHeartbeat(begunAtMs);
    accounts.noteNewest(answer.accountsVersion, begunAtMs + timeoutMs * FENCE_SHARE);
    this.#sent += 1;
    return answer;
  }

  /** Again, a few times, while the answers are so slow that they hardly tell the time. */
  async #sendFirst(): Promise<HeartbeatAnswer> {
    const { clock } = this.#deps;
    for (let tries = 1; ; tries += 1) {
      const begunAtMs = clock.elapsedMs;
      const answer = await this.#send();
      if (clock.elapsedMs - begunAtMs <= QUICK_MS || tries === QUICK_TRIES) return answer;
    }
  }

  /** At a time of its own, so that a crowd of workers that were started together does not send them together. */
  #pauseMs(): Millis {
    const [byte = 0] = this.#deps.randomness.bytes(1);
    return (this.#deps.timeoutMs / BEATS_PER_TIMEOUT) * (1 - byte / 1024);
  }

  #beginSending(): void {
    this.#sending = this.#sendOnce().finally(() => {
      this.#sending = undefined;
      if (this.#isSendingDue) this.#sendSoon();
    });
  }

  #sendSoon(): void {
    if (this.#stopped) return;
    if (this.#sending !== undefined) this.#isSendingDue = true;
    else this.#alarm.setIn(0);
  }

  async #sendOnce(): Promise<void> {
    const { log, timeoutMs, accounts } = this.#deps;
    this.#isSendingDue = false;
    const wasClosed = this.#fence.isClosed;
    let pauseMs = timeoutMs * RETRY_SHARE;
    try {
      const answer = await this.#send();
      pauseMs = this.#pauseMs();
      if (!this.#stopped) this.#hear(answer, wasClosed);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      log.warn('beat_failed', { reason: error.message });
      accounts.noteUnknown(error);
    }
    if (!this.#stopped) this.#alarm.setIn(pauseMs);
  }

  #hear(answer: HeartbeatAnswer, wasClosed: boolean): void {
    const { log, worker } = this.#deps;
    const { dispatcher, noteSchedule, noteDeadline } = this.#listeners as Listeners;
    if (!answer.wasKnown) {
      log.warn('declared_dead', { worker });
      dispatcher.interrupt();
      this.noteCommitUnknown();
    }
    if (wasClosed) log.info('fence_opened', { worker });
    this.#setFenceAlarm();
    if (answer.nextDueAtMs !== undefined) dispatcher.noteDue(answer.nextDueAtMs);
    else dispatcher.wake();
    if (answer.nextScheduleAtMs !== undefined) noteSchedule(answer.nextScheduleAtMs);
    if (answer.nextWaiterAtMs !== undefined) noteDeadline(answer.nextWaiterAtMs);
    if (this.#others.some((other) => !answer.others.includes(other))) this.#linesAreLost = true;
    this.#others = answer.others;
    this.#caring ??= this.#care(answer).finally(() => {
      this.#caring = undefined;
    });
  }

  #setFenceAlarm(): void {
    this.#fenceAlarm.setIn(this.#fence.leftMs + 1);
  }

  /** Attempts in flight end before the others may begin them anew. */
  #lookAtFence(): void {
    if (!this.#fence.isClosed) return this.#setFenceAlarm();
    this.#deps.log.warn('fence_closed', { worker: this.#deps.worker });
    this.#listeners?.dispatcher.interrupt();
  }

  /** What could not be done because the store failed is done after another heartbeat. */
  async #care(answer: HeartbeatAnswer): Promise<void> {
    const { accounts, log } = this.#deps;
    try {
      if (answer.accountsVersion !== accounts.version) {
        await accounts.refresh();
        this.#sendSoon(); // which says so: somebody waits for it
      }
      if (answer.hasLate) await this.#expire();
      if (this.#sent % LOOK_EVERY === 0 || this.#isCommitUnknown) await this.#look();
      await this.#readLines();
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      log.warn('rescue_failed', { reason: error.message });
      accounts.noteUnknown(error);
      this.noteCommitUnknown();
    }
  }

  /** Declares those dead that are late, and gives back what is nobody's. */
  async #expire(): Promise<void> {
    const { store, clock, log } = this.#deps;
    const dead = await store.workers.expireWorkers({ nowMs: clock.nowMs() });
    for (const worker of dead) log.info('worker_gone', { worker });
    if (dead.length > 0) this.#linesAreLost = true;
    await this.#releaseOrphans();
    if (dead.length > 0) this.#listeners?.noteDeath();
  }

  /** Those of a worker that died are more than a few; one that comes late was being saved while its worker died. */
  async #releaseOrphans(): Promise<void> {
    const { store } = this.#deps;
    for (let count = PIECE; count === PIECE; ) {
      const claims = await store.workers.orphanedClaims({ limit: PIECE });
      count = claims.length;
      await this.#release('rescued', claims);
    }
  }

  /**
   * Looks for claims that are left over: in nobody's name, or in this worker's, which does not know of them because the
   * answer was lost. Those were unknown at two looks: at a single one the attempt may just have ended.
   */
  async #look(): Promise<void> {
    const { store, worker } = this.#deps;
    const { dispatcher } = this.#listeners as Listeners;
    this.#isCommitUnknown = false;
    await this.#releaseOrphans();
    const unknown = (await store.workers.claimsOf({ worker })).filter(
      ({ claimToken }) => !dispatcher.holds(claimToken),
    );
    const leftOver = unknown.filter(({ claimToken }) => this.#unknownClaims.has(claimToken));
    this.#unknownClaims = new Set(unknown.map(({ claimToken }) => claimToken));
    if (unknown.length > 0) this.#isCommitUnknown = true; // the next heartbeat brings the next look
    await this.#release('given_back', leftOver);
  }

  async #release(event: string, claims: ClaimRef[]): Promise<void> {
    const { store, clock, log } = this.#deps;
    if (claims.length === 0) return;
    await store.messages.release(claims, clock.nowMs());
    log.info(event, { count: claims.length });
  }

  /**
   * Which lines there are, of those that the others fill as well. They serve them too, but only where they have room: a worker
   * may be full for as long as its endpoints take. Nothing else tells of their lines; a line that is heard of late costs its
   * messages this one heartbeat, and is then served by all until it is empty.
   */
  async #readLines(): Promise<void> {
    const piece = this.#linesAreLost ? undefined : { after: this.#lastLine, limit: LINES_PIECE };
    this.#linesAreLost = false;
    const lines = await this.#deps.store.messages.waitingLines(piece);
    this.#lastLine = piece && lines.length === LINES_PIECE ? lines.at(-1) : undefined;
    for (const line of lines) this.#listeners?.dispatcher.noteWaitingLine(line);
  }
}
