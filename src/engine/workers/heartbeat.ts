/**
 * Tells the other workers on the database that this one lives, and looks after what the dead have left. Whoever cannot
 * beat in time is declared dead by the others; so a worker that cannot be sure of its beats gives up by itself before
 * (`Fence`).
 *
 * Each beat also brings the database's time and makes good what notifications may have lost.
 */
import { Alarm } from '../alarm.ts';
import type { OriginLine } from '../lanes/origin-line.ts';
import type { ClaimRef, ClaimToken, Millis, WorkerId } from '../model.ts';
import type { EventLog, Randomness, Timer } from '../ports.ts';
import { StoreUnavailable } from '../store-errors.ts';
import type { MessageStore } from '../stores.ts';
import type { DatabaseClock } from './database-clock.ts';
import { BeatFence, type Fence } from './fence.ts';
import type { Beat, WorkerStore } from './store.ts';

/** Beats of which at least one must be answered in time. */
const BEATS_PER_TIMEOUT = 3;
/** Share of the timeout after which a worker without an answered beat is to have let go of everything. */
const FENCE_SHARE = 0.8;
/** Share of the timeout after which a beat that failed is tried again. */
const RETRY_SHARE = 1 / 15;
/** Beats between two looks for claims that were left over, when nothing gives reason for one. */
const LOOK_EVERY = 3;
/** Claims released in one transaction: a few milliseconds of work. */
const PIECE = 200;
/** Lines that are read with a beat when none may be lost: what others have no room for waits no longer than a beat. */
const LINES_PIECE = 500;
/** A beat that takes no longer tells the time well enough to begin with. */
const QUICK_MS = 500;
const QUICK_TRIES = 3;
/** How long an end waits to be noted; when it is not, the others find out by the missing beats. */
const LEAVE_WAIT_MS = 1_000;

export interface HeartbeatDeps {
  store: { workers: Omit<WorkerStore, 'workersBehind'>; messages: Pick<MessageStore, 'release' | 'parkedLines'> };
  clock: DatabaseClock;
  randomness: Randomness;
  log: EventLog;
  worker: WorkerId;
  /** Without a beat for so long, the others may declare this worker dead. */
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

/** The rest of the worker, as far as it must hear of a beat. */
export interface Listeners {
  /** Has the slots for attempts. */
  dispatcher: {
    holds(claimToken: ClaimToken): boolean;
    interrupt(): void;
    noteDue(dueAtMs: Millis): void;
    noteParked(line: OriginLine): void;
    wake(): void;
  };
  noteSchedule(atMs: Millis): void;
  noteDeadline(atMs: Millis): void;
  /** Somebody is gone who may have been doing something in pieces, such as the deletion of a queue. */
  noteDeath(): void;
}

export class Heartbeat {
  readonly #deps: HeartbeatDeps;
  readonly #fence: BeatFence;
  #listeners: Listeners | undefined;
  readonly #beatAlarm: Alarm;
  readonly #fenceAlarm: Alarm;
  #isLeaving = false;
  #stopped = false;
  /** The beat under way. */
  #beating: Promise<void> | undefined;
  /** What follows from a beat and is under way still. */
  #caring: Promise<void> | undefined;
  #beats = 0;
  #others: readonly WorkerId[] = [];
  /** The others, or whoever changes accounts, wait for the next beat. */
  #isBeatDue = false;
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
    this.#fence = new BeatFence(deps.clock, deps.timeoutMs * FENCE_SHARE);
    this.#beatAlarm = new Alarm(deps.clock, () => this.#beginBeat());
    this.#fenceAlarm = new Alarm(deps.clock, () => this.#lookAtFence());
  }

  get fence(): Fence {
    return this.#fence;
  }

  /** The first beat, and the care for what the dead have left (P7). Throws `StoreUnavailable`. */
  async begin(): Promise<void> {
    const beat = await this.#firstBeat();
    this.#others = beat.others;
    await this.#bury();
    const { accounts } = this.#deps;
    // What was read before the beat may be older than its version.
    for (let { accountsVersion } = beat; accountsVersion !== accounts.version; ) {
      await accounts.refresh();
      ({ accountsVersion } = await this.#beat());
    }
  }

  /** From now on it beats, and `listeners` hear what each beat brings. */
  start(listeners: Listeners): void {
    this.#listeners = listeners;
    this.#setFenceAlarm();
    this.#beatAlarm.setIn(this.#pauseMs());
  }

  /** It is not known whether something was saved: the next looks will show. */
  noteCommitUnknown(): void {
    this.#isCommitUnknown = true;
    this.#linesAreLost = true;
  }

  /** Others have changed accounts: the next beats read them, and say so. */
  noteAccounts(): void {
    if (this.#listeners) this.#beatSoon();
  }

  /** This worker claims nothing any more; the others are to read the lines that it has read. */
  noteDraining(): void {
    this.#isLeaving = true;
    if (this.#listeners && !this.#beating) this.#beatAlarm.setIn(0);
  }

  /** No attempt is left. Resolves when the others will hear of it, or after a moment. */
  async stop(): Promise<void> {
    const { store, clock, worker } = this.#deps;
    this.#stopped = true;
    this.#beatAlarm.cancel();
    this.#fenceAlarm.cancel();
    const left = Promise.all([this.#beating, this.#caring])
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

  async #beat(): Promise<Beat> {
    const { store, clock, worker, timeoutMs, accounts } = this.#deps;
    const begunAtMs = clock.elapsedMs;
    const known = this.#beats > 0 && { known: { nowMs: clock.nowMs(), leadMs: clock.leadMs } };
    const { version: accountsVersion } = accounts;
    const beat = await store.workers.beat({ worker, timeoutMs, isLeaving: this.#isLeaving, accountsVersion, ...known });
    clock.correct(beat.wallMs, begunAtMs, beat.leadMs);
    this.#fence.noteBeat(begunAtMs);
    accounts.noteNewest(beat.accountsVersion, begunAtMs + timeoutMs * FENCE_SHARE);
    this.#beats += 1;
    return beat;
  }

  /** Again, a few times, while the answers are so slow that they hardly tell the time. */
  async #firstBeat(): Promise<Beat> {
    const { clock } = this.#deps;
    for (let tries = 1; ; tries += 1) {
      const begunAtMs = clock.elapsedMs;
      const beat = await this.#beat();
      if (clock.elapsedMs - begunAtMs <= QUICK_MS || tries === QUICK_TRIES) return beat;
    }
  }

  /** At a time of its own, so that a crowd of workers that were started together does not beat together. */
  #pauseMs(): Millis {
    const [byte = 0] = this.#deps.randomness.bytes(1);
    return (this.#deps.timeoutMs / BEATS_PER_TIMEOUT) * (1 - byte / 1024);
  }

  #beginBeat(): void {
    this.#beating = this.#beatOnce().finally(() => {
      this.#beating = undefined;
      if (this.#isBeatDue) this.#beatSoon();
    });
  }

  #beatSoon(): void {
    if (this.#stopped) return;
    if (this.#beating !== undefined) this.#isBeatDue = true;
    else this.#beatAlarm.setIn(0);
  }

  async #beatOnce(): Promise<void> {
    const { log, timeoutMs, accounts } = this.#deps;
    this.#isBeatDue = false;
    const wasClosed = this.#fence.isClosed;
    let pauseMs = timeoutMs * RETRY_SHARE;
    try {
      const beat = await this.#beat();
      pauseMs = this.#pauseMs();
      if (!this.#stopped) this.#hear(beat, wasClosed);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      log.warn('beat_failed', { reason: error.message });
      accounts.noteUnknown(error);
    }
    if (!this.#stopped) this.#beatAlarm.setIn(pauseMs);
  }

  #hear(beat: Beat, wasClosed: boolean): void {
    const { log, worker } = this.#deps;
    const { dispatcher, noteSchedule, noteDeadline } = this.#listeners as Listeners;
    if (!beat.wasKnown) {
      log.warn('declared_dead', { worker });
      dispatcher.interrupt();
      this.noteCommitUnknown();
    }
    if (wasClosed) log.info('fence_opened', { worker });
    this.#setFenceAlarm();
    if (beat.nextDueAtMs !== undefined) dispatcher.noteDue(beat.nextDueAtMs);
    else dispatcher.wake();
    if (beat.nextScheduleAtMs !== undefined) noteSchedule(beat.nextScheduleAtMs);
    if (beat.nextWaiterAtMs !== undefined) noteDeadline(beat.nextWaiterAtMs);
    if (this.#others.some((other) => !beat.others.includes(other))) this.#linesAreLost = true;
    this.#others = beat.others;
    this.#caring ??= this.#care(beat).finally(() => {
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

  /** What could not be done because the store failed is done after another beat. */
  async #care(beat: Beat): Promise<void> {
    const { accounts, log } = this.#deps;
    try {
      if (beat.accountsVersion !== accounts.version) {
        await accounts.refresh();
        this.#beatSoon(); // which says so: somebody waits for it
      }
      if (beat.hasLate) await this.#bury();
      if (this.#beats % LOOK_EVERY === 0 || this.#isCommitUnknown) await this.#look();
      await this.#readLines();
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      log.warn('rescue_failed', { reason: error.message });
      accounts.noteUnknown(error);
      this.noteCommitUnknown();
    }
  }

  /** Declares those dead that are late, and gives back what is nobody's. */
  async #bury(): Promise<void> {
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
    if (unknown.length > 0) this.#isCommitUnknown = true; // the next beat brings the next look
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
   * messages this one beat, and is then served by all until it is empty.
   */
  async #readLines(): Promise<void> {
    const piece = this.#linesAreLost ? undefined : { after: this.#lastLine, limit: LINES_PIECE };
    this.#linesAreLost = false;
    const lines = await this.#deps.store.messages.parkedLines(piece);
    this.#lastLine = piece && lines.length === LINES_PIECE ? lines.at(-1) : undefined;
    for (const line of lines) this.#listeners?.dispatcher.noteParked(line);
  }
}
