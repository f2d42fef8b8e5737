/**
 * Claims messages while the worker has free slots, and messages are due or a backlog may start an attempt.
 *
 * The loop sleeps until the earliest known due time and does not query the store until then (P12). It wakes when a
 * message becomes due earlier, or when a slot becomes free while messages wait for one.
 */

import { LARGE_CLAIM, LaggingProjects } from '../admission/lagging-projects.ts';
import type { IdleCalls } from '../calls/idle-calls.ts';
import { type BacklogKey, backlogKeyOf } from '../lanes/backlog-key.ts';
import { type BacklogRange, Backlogs, type NextBacklogs, NO_BACKLOGS } from '../lanes/backlogs.ts';
import type { InFlight, Offer } from '../lanes/in-flight.ts';
import { leastLagFirst } from '../lanes/lag.ts';
import { Alarm } from '../loops/alarm.ts';
import type { Claimed, ClaimToken, Millis } from '../model.ts';
import { StoreUnavailable } from '../store-errors.ts';
import { ClaimPace } from './claim-pace.ts';
import type { ClaimRequest, ClaimResult, RotationState } from './claims.ts';
import type { DeliveryContext } from './context.ts';

/**
 * The maximum of messages in one claim, so that its transaction is short, and also the turn of the event loop that sends
 * them.
 */
const CLAIM_MAX = 64;
/**
 * The same maximum for stores that run each claim in a transaction of its own, with many round trips even for few
 * messages.
 */
const CLAIM_MAX_SEPARATE = 128;
/** The maximum of claims that are pending at a time while a project lags: see `ClaimPace`. */
const CLAIMS_MAX = 3;
/** The maximum of backlogs that one claim serves. The next claim serves other backlogs. */
const BACKLOGS_MAX = 64;
/** The minimum time until the next check for silent attempts, so that several are handled together. */
const SILENCE_CHECK_MS = 100;
/** The pause after the store has failed to claim. */
const STORE_RETRY_MS = 5_000;

interface ClaimLoopListeners {
  /**
   * Makes the attempts of messages whose claim was requested at `requestedAtMs`. Resolves when all requests are sent;
   * returns no promise if all requests were sent at once.
   */
  startAttempts: (claimed: readonly Claimed[], requestedAtMs: Millis) => Promise<void> | undefined;
  /** Called when a claim that was pending at the time of `stop` has its result. */
  onStopped: () => void;
}

/** The sources of messages for a claim. */
type ClaimTargets = Required<Pick<ClaimRequest, 'due' | 'dueFirst' | 'backlogsToServe' | 'freshBacklogs'>>;

/** A claim whose result is not known yet. */
interface PendingClaim {
  backlogsToServe: BacklogKey[];
  offer: Offer;
  /** When the claim was requested, as elapsed time. */
  requestedAtMs: Millis;
  /** Whether another claim was pending when this claim was made. */
  isStrict: boolean;
  /** The claim tokens that the claim may use. */
  tokens?: { first: ClaimToken; end: ClaimToken };
  /** Notifications since the claim was sent, which may be newer than the result of the claim. */
  notified: { dueAtMs: Millis; waitingBacklogs: Set<BacklogKey> };
}

export class ClaimLoop {
  readonly laggingProjects = new LaggingProjects();
  readonly pace: ClaimPace;
  readonly backlogs: Backlogs;
  readonly #context: DeliveryContext;
  readonly #inFlight: InFlight;
  readonly #idleCalls: IdleCalls;
  readonly #listeners: ClaimLoopListeners;
  readonly #claims = new Set<PendingClaim>();
  readonly #alarm: Alarm;
  /** Wakes the loop when attempts become silent and give up their slots. */
  readonly #silenceAlarm: Alarm;
  /** Wakes the loop to retry a failed read of the backlogs that are only in the store. */
  readonly #backlogsAlarm: Alarm;

  #nextDueAtMs: Millis = 0; // unknown at start: claim at once
  /** The maximum of pending claims. Each large claim adds one to this maximum; any smaller claim sets it to one. */
  #claimsMax = 1;
  #isDueFirst = true;
  /** Set while more messages are due than one claim takes. */
  #rotation: RotationState | undefined;
  #lanesFirst = false;
  #isReadingBacklogs = false;
  #stopped = false;

  constructor(context: DeliveryContext, inFlight: InFlight, idleCalls: IdleCalls, listeners: ClaimLoopListeners) {
    const { clock, settings } = context;
    this.#context = context;
    this.#inFlight = inFlight;
    this.#idleCalls = idleCalls;
    this.#listeners = listeners;
    this.backlogs = new Backlogs(inFlight, settings.backlogsMax);
    const wake = () => this.wake();
    this.pace = new ClaimPace(clock, wake);
    this.#alarm = new Alarm(clock, wake);
    this.#silenceAlarm = new Alarm(clock, wake);
    this.#backlogsAlarm = new Alarm(clock, wake);
  }

  /** Whether this worker takes messages now. It takes none while it shuts down or is fenced. */
  get isOpen(): boolean {
    return !this.#stopped && !this.#context.fence.isClosed;
  }

  get isStopped(): boolean {
    return this.#stopped;
  }

  /** Whether no claim is pending. */
  get isIdle(): boolean {
    return this.#claims.size === 0;
  }

  /** Whether a pending claim may return a message under `claimToken`. */
  mayReturn(claimToken: ClaimToken): boolean {
    for (const { tokens } of this.#claims)
      if (tokens && claimToken >= tokens.first && claimToken < tokens.end) return true;
    return false;
  }

  /** Starts no more claims. The results of pending claims are still handled. */
  stop(): void {
    this.#stopped = true;
    this.#alarm.cancel();
    this.#silenceAlarm.cancel();
    this.#backlogsAlarm.cancel();
    this.pace.stop();
  }

  /** Notes that a message was saved that is due at `dueAtMs`. */
  noteDue(dueAtMs: Millis): void {
    for (const { notified } of this.#claims) notified.dueAtMs = Math.min(notified.dueAtMs, dueAtMs);
    this.pace.noteDue();
    this.#nextDueAtMs = Math.min(this.#nextDueAtMs, dueAtMs);
    this.wake();
  }

  /** Notes that a message was saved into `backlog`. */
  noteWaitingBacklog(backlog: BacklogKey): void {
    this.#noteBacklog(backlog);
    this.wake();
  }

  #noteBacklog(backlog: BacklogKey): void {
    for (const { notified } of this.#claims) notified.waitingBacklogs.add(backlog);
    this.backlogs.add(backlog);
  }

  /** Makes a claim if messages may be due and there is capacity for a message; otherwise sets the timer. */
  wake(): void {
    this.#readBacklogs();
    this.endIdleCalls();
    let next: 'claimed' | 'deferred' | 'none' = 'claimed';
    while (this.#claims.size < this.#claimsMax && next === 'claimed') next = this.#claimNext();
    if (this.isIdle && next === 'none') this.laggingProjects.noteIdle();
  }

  /** Reads backlogs that are only in the store, one range at a time. */
  #readBacklogs(): void {
    if (this.#isReadingBacklogs || this.#stopped || this.#backlogsAlarm.isSet) return;
    const range = this.backlogs.nextRange();
    if (range) void this.#readRange(range);
  }

  async #readRange(range: BacklogRange): Promise<void> {
    const { store, log } = this.#context;
    this.#isReadingBacklogs = true;
    try {
      this.backlogs.noteRead(range, await store.messages.waitingBacklogs(range));
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      log.warn('claim_failed', { reason: error.message });
      if (!this.#stopped) this.#backlogsAlarm.setIn(STORE_RETRY_MS);
    } finally {
      this.#isReadingBacklogs = false;
    }
    this.wake();
  }

  /** Ends idle calls if their slots would let other messages start. */
  endIdleCalls(): void {
    this.#idleCalls.freeSlots(
      () => this.backlogs.some(BACKLOGS_MAX),
      () => this.#nextDueAtMs <= this.#context.clock.nowMs(),
    );
  }

  /** Makes a claim, if possible. Returns `'deferred'` if messages may be due but the claim must wait: see `ClaimPace`. */
  #claimNext(): 'claimed' | 'deferred' | 'none' {
    const { clock } = this.#context;
    if (!this.isOpen) return 'none'; // the heartbeat that opens the fence wakes the loop
    if (this.#claims.size > 0 && !this.pace.mayOverlap) return 'deferred';
    this.#inFlight.findSilent(clock.elapsedMs);
    const due = this.#nextDueAtMs <= clock.nowMs();
    const full = this.#inFlight.isFull;
    if (!full && (due || !this.backlogs.isEmpty) && this.pace.mustWait) return 'deferred';
    const { backlogs: backlogsToServe, fresh: freshBacklogs } = full ? NO_BACKLOGS : this.#backlogsToServe();
    if (full || (!due && backlogsToServe.length === 0)) {
      if (!due) this.#alarm.setAt(this.#nextDueAtMs);
      this.wakeWhenSilent();
      return 'none'; // the next free slot wakes the loop of a full worker
    }
    this.pace.noteClaim();
    // Backlogs and newly due messages alternate: otherwise a single free slot would go to the backlogs each time.
    if (due && backlogsToServe.length > 0) this.#isDueFirst = !this.#isDueFirst;
    void this.#claim({ due, dueFirst: due && this.#isDueFirst, backlogsToServe, freshBacklogs });
    return 'claimed';
  }

  /** If a message waits for a slot, wakes the loop when attempts become silent. */
  wakeWhenSilent(): void {
    const { clock } = this.#context;
    if (this.#stopped || this.#silenceAlarm.isSet) return;
    if (this.backlogs.isEmpty && this.#nextDueAtMs > clock.nowMs()) return;
    const atMs = this.backlogs.isTruncated ? 0 : this.#inFlight.silentAtMs;
    if (atMs !== undefined) this.#silenceAlarm.setIn(Math.max(SILENCE_CHECK_MS, atMs - clock.elapsedMs));
  }

  /** The next backlogs that no pending claim serves; if there are none, the backlogs that pending claims serve. */
  #backlogsToServe(): NextBacklogs {
    if (this.backlogs.isEmpty) return NO_BACKLOGS;
    const served = new Set([...this.#claims].flatMap(({ backlogsToServe }) => backlogsToServe));
    const unserved = this.backlogs.next(BACKLOGS_MAX, served);
    return unserved.backlogs.length > 0 || served.size === 0 ? unserved : this.backlogs.next(BACKLOGS_MAX, new Set());
  }

  async #claim(targets: ClaimTargets): Promise<void> {
    const { clock, log, areClaimsSeparate } = this.#context;
    const inFlight = this.#inFlight;
    const { due, backlogsToServe } = targets;
    const usable = due ? Infinity : backlogsToServe.reduce((sum, backlog) => sum + inFlight.capacityOf(backlog), 0);
    const offer = inFlight.offer(Math.min(areClaimsSeparate ? CLAIM_MAX_SEPARATE : CLAIM_MAX, usable), backlogsToServe);
    const claim: PendingClaim = {
      backlogsToServe: backlogsToServe,
      offer,
      requestedAtMs: clock.elapsedMs,
      isStrict: this.#claims.size > 0,
      notified: { dueAtMs: Infinity, waitingBacklogs: new Set() },
    };
    this.#claims.add(claim);
    let pauseMs = 0;
    let sent: Promise<void> | undefined;
    try {
      const result = await this.#request(targets, claim);
      this.#claims.delete(claim);
      sent = this.#handle(result, claim);
    } catch (error) {
      // Nothing was claimed, so the next due time is unchanged.
      if (!(error instanceof StoreUnavailable)) throw error;
      log.warn('claim_failed', { reason: error.message });
      this.#claimsMax = 1;
      pauseMs = STORE_RETRY_MS;
    } finally {
      inFlight.endOffer(offer);
      this.#claims.delete(claim);
    }
    if (sent !== undefined) await sent;
    if (this.#stopped) this.#listeners.onStopped();
    else if (pauseMs > 0) this.#alarm.setIn(pauseMs);
    else this.wake();
  }

  async #request({ due, ...targets }: ClaimTargets, claim: PendingClaim): Promise<ClaimResult> {
    const { store, numbers, clock, worker } = this.#context;
    const { slots, bytes, reserved: _, ...capacities } = claim.offer;
    const firstToken: ClaimToken = await numbers.take(slots);
    claim.tokens = { first: firstToken, end: firstToken + slots };
    if (due) this.#lanesFirst = !this.#lanesFirst;
    const limits = { limit: slots, bytesMax: bytes, isStrict: claim.isStrict, ...capacities };
    const order = { rotation: this.#rotation, lanesFirst: this.#lanesFirst, hasBacklogs: !this.backlogs.isEmpty };
    const request = { worker, firstToken, ...limits, due, ...targets, ...order };
    return store.messages.claim({ request, nowMs: clock.nowMs() });
  }

  #handle(result: ClaimResult, { backlogsToServe, notified, requestedAtMs }: PendingClaim): Promise<void> | undefined {
    const { clock } = this.#context;
    const {
      claimed,
      waitingBacklogs,
      emptied,
      nextDueAtMs = Infinity,
      rotation = this.#rotation ?? { after: 0 },
    } = result;
    this.#nextDueAtMs = Math.min(nextDueAtMs, notified.dueAtMs);
    const nowMs = clock.nowMs();
    this.#rotation = nextDueAtMs <= nowMs ? rotation : undefined;
    if (result.isLocked && notified.dueAtMs > nowMs) this.pace.noteLocked();
    const served = new Set(claimed.map(({ message }) => backlogKeyOf(message)));
    for (const backlog of emptied) this.backlogs.delete(backlog);
    for (const backlog of backlogsToServe) {
      if (emptied.includes(backlog)) continue;
      this.#noteBacklog(backlog); // another claim may have found it empty, because this claim took its messages
      if (served.has(backlog)) this.backlogs.moveToEnd(backlog); // otherwise it keeps its position
    }
    for (const backlog of waitingBacklogs) this.#noteBacklog(backlog);
    for (const backlog of notified.waitingBacklogs) this.backlogs.add(backlog);
    const inOrder = leastLagFirst(claimed);
    for (const { message, dueAtMs } of inOrder) this.backlogs.noteLag(message.projectId, nowMs - dueAtMs);
    this.laggingProjects.noteClaim(backlogsToServe, claimed, clock.elapsedMs);
    this.#claimsMax = claimed.length >= LARGE_CLAIM ? Math.min(this.#claimsMax + 1, CLAIMS_MAX) : 1;
    return this.#listeners.startAttempts(inOrder, requestedAtMs);
  }
}
