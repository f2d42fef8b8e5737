/**
 * Tells the other workers on the database that this one lives. A worker that sends no heartbeat in time is expired by the
 * others (`Rescue`). So a worker that cannot be sure of its heartbeats stops by itself before that (`Fence`).
 *
 * Each heartbeat also brings the database's time, and what lost notifications would have brought.
 */

import type { Store } from '../../store/store.ts';
import type { EngineDeps } from '../deps.ts';
import { Alarm } from '../loops/alarm.ts';
import type { Millis, ProjectId, WorkerId } from '../model.ts';
import type { Timer } from '../ports.ts';
import { StoreUnavailable } from '../store-errors.ts';
import { type Fence, fenceLimitMs, HeartbeatFence } from './fence.ts';
import { type Heartbeats, Rescue, type RescueContext, type RescueListeners } from './rescue.ts';
import type { HeartbeatAnswer } from './store.ts';

/** Heartbeats of which at least one must be answered in time. */
const HEARTBEATS_PER_TIMEOUT = 3;
/** Share of the timeout after which a heartbeat that failed is tried again. */
const RETRY_SHARE = 1 / 15;
/**
 * A first heartbeat that takes longer does not tell the time well enough, and is sent again, up to `QUICK_TRIES` times.
 */
const QUICK_MS = 500;
const QUICK_TRIES = 3;
/** What a worker reports that goes by no accounts of this store. */
const NO_ACCOUNTS = 0;
/** How long a worker that ends waits for the store to note it. If it is not noted, the others miss its heartbeats. */
const LEAVE_WAIT_MS = 1_000;

type HeartbeatContext = RescueContext &
  Pick<EngineDeps, 'randomness'> & { store: { workers: Pick<Store['workers'], 'heartbeat' | 'leave'> } };

/** The parts of the worker that must hear of a heartbeat. */
export interface Listeners extends RescueListeners {
  dispatcher: RescueListeners['dispatcher'] & {
    countOf(projectId: ProjectId): number;
    interrupt(projectId?: ProjectId): void;
    noteDue(dueAtMs: Millis): void;
    wake(): void;
  };
  noteSchedule(atMs: Millis): void;
  noteDeadline(atMs: Millis): void;
  /** A run that is over has messages left. */
  noteEnding(): void;
}

export class Heartbeat {
  readonly #context: HeartbeatContext;
  readonly #own: Heartbeats;
  readonly #fence: HeartbeatFence;
  readonly #rescue: Rescue;
  #listeners: Listeners | undefined;
  #leaveProjects = () => {};
  readonly #alarm: Alarm;
  readonly #fenceAlarm: Alarm;
  #isLeaving = false;
  #stopped = false;
  /** The heartbeat under way. */
  #sending: Promise<void> | undefined;
  /** The work after a heartbeat that is still under way. */
  #caring: Promise<void> | undefined;
  #sent = 0;
  #others: readonly WorkerId[] = [];
  /** The next heartbeat must follow at once: it reports which accounts this worker has read. */
  #isSendingDue = false;

  constructor(context: HeartbeatContext, own: Heartbeats) {
    const { clock, timeoutMs, projects } = own;
    this.#context = context;
    this.#own = own;
    this.#fence = new HeartbeatFence(clock, fenceLimitMs(timeoutMs), projects);
    this.#rescue = new Rescue(context, own);
    this.#alarm = new Alarm(clock, () => this.#beginSending());
    this.#fenceAlarm = new Alarm(clock, () => this.#lookAtFence());
  }

  /** Workers that claim messages, this one included, as the latest heartbeat told. */
  get workersAlive(): number {
    return this.#others.length + 1;
  }

  /** All of them but this one. */
  get others(): readonly WorkerId[] {
    return this.#others;
  }

  /** Whether no other worker comes before it: it does what one of all workers does. */
  get isFirst(): boolean {
    return this.#others.every((other) => other > this.#context.worker);
  }

  get fence(): Fence {
    return this.#fence;
  }

  /** Sends the first heartbeat and releases the claims of expired workers (P7). Throws `StoreUnavailable`. */
  async begin(): Promise<void> {
    const answer = await this.#sendFirst();
    this.#others = answer.others;
    await this.#rescue.expire();
    const { accounts } = this.#own;
    if (!accounts) return;
    // What was read before the heartbeat may be older than its version.
    for (let { accountsVersion } = answer; accountsVersion !== accounts.version; ) {
      await accounts.refresh();
      ({ accountsVersion } = await this.#send());
    }
  }

  /** From now on sends heartbeats and tells `listeners` what each of them brings. */
  start(listeners: Listeners): void {
    this.#listeners = listeners;
    this.#rescue.start(listeners);
    const { dispatcher } = listeners;
    const attempts = {
      countOf: (projectId: ProjectId) => dispatcher.countOf(projectId),
      interrupt: (projectId: ProjectId) => dispatcher.interrupt(projectId),
      askSoon: () => this.#sendSoon(),
    };
    this.#leaveProjects = this.#own.projects?.join(attempts) ?? this.#leaveProjects;
    this.#setFenceAlarm();
    this.#alarm.setIn(this.#pauseMs());
  }

  /** It is not known whether something was saved: the next looks will find what is left over. */
  noteCommitUnknown(): void {
    this.#rescue.noteCommitUnknown();
  }

  /** Some lines were not read yet: all are read after the next heartbeat, so that none is late for them. */
  noteLinesLeft(): void {
    this.#rescue.noteLinesLost();
  }

  /** Other workers have changed accounts: after the next heartbeat this one reads them, and a further one reports it. */
  noteAccounts(): void {
    if (this.#listeners) this.#sendSoon();
  }

  /**
   * This worker claims nothing any more. Its next heartbeat says so, and the others then read the lines that it has
   * served.
   */
  noteDraining(): void {
    this.#isLeaving = true;
    if (this.#listeners && !this.#sending) this.#alarm.setIn(0);
  }

  /** No attempt is left. Resolves when the store has noted the end of this worker, or after a moment. */
  async stop(): Promise<void> {
    const { store, worker } = this.#context;
    const { clock } = this.#own;
    this.#stopped = true;
    this.#rescue.stop();
    this.#leaveProjects();
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
    const { store, worker } = this.#context;
    const { clock, timeoutMs, accounts, projects } = this.#own;
    const begunAtMs = clock.elapsedMs;
    const asked = projects?.toAskFor(this.#fence) ?? [];
    const known = this.#sent > 0 && { known: { nowMs: clock.nowMs(), leadMs: clock.leadMs } };
    const answer = await store.workers.heartbeat({
      worker,
      timeoutMs,
      isLeaving: this.#isLeaving,
      accountsVersion: accounts?.version ?? NO_ACCOUNTS,
      projects: asked,
      ...known,
    });
    clock.correct(answer.wallMs, begunAtMs, answer.leadMs);
    this.#fence.noteHeartbeat(begunAtMs);
    const { here, wasKnown } = answer;
    projects?.hear({ asked, here, begunAtMs, wasKnown }, this.#fence);
    accounts?.noteNewest(answer.accountsVersion, begunAtMs + fenceLimitMs(timeoutMs));
    this.#sent += 1;
    return answer;
  }

  /** Sends it again, a few times, while the answer is too slow to tell the time. */
  async #sendFirst(): Promise<HeartbeatAnswer> {
    const { clock } = this.#own;
    for (let tries = 1; ; tries += 1) {
      const begunAtMs = clock.elapsedMs;
      const answer = await this.#send();
      if (clock.elapsedMs - begunAtMs <= QUICK_MS || tries === QUICK_TRIES) return answer;
    }
  }

  /** Random, so that workers that were started together do not send their heartbeats together. */
  #pauseMs(): Millis {
    const [byte = 0] = this.#context.randomness.bytes(1);
    return (this.#own.timeoutMs / HEARTBEATS_PER_TIMEOUT) * (1 - byte / 1024);
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
    const { log } = this.#context;
    const { timeoutMs, accounts } = this.#own;
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
      accounts?.noteUnknown(error);
    }
    if (!this.#stopped) this.#alarm.setIn(pauseMs);
  }

  #hear(answer: HeartbeatAnswer, wasClosed: boolean): void {
    const { log, worker } = this.#context;
    const { dispatcher, noteSchedule, noteDeadline, noteEnding } = this.#listeners as Listeners;
    if (!answer.wasKnown) {
      log.warn('declared_dead', { worker });
      dispatcher.interrupt();
      this.#rescue.noteCommitUnknown();
    }
    if (wasClosed) log.info('fence_opened', { worker });
    this.#setFenceAlarm();
    if (answer.nextDueAtMs !== undefined) dispatcher.noteDue(answer.nextDueAtMs);
    else dispatcher.wake();
    if (answer.nextScheduleAtMs !== undefined) noteSchedule(answer.nextScheduleAtMs);
    if (answer.nextWaiterAtMs !== undefined) noteDeadline(answer.nextWaiterAtMs);
    if (answer.hasEnding) noteEnding();
    if (this.#others.some((other) => !answer.others.includes(other))) this.#rescue.noteLinesLost();
    this.#others = answer.others;
    this.#caring ??= this.#care(answer).finally(() => {
      this.#caring = undefined;
    });
  }

  #setFenceAlarm(): void {
    this.#fenceAlarm.setIn(this.#fence.leftMs + 1);
  }

  /** Ends the attempts in flight before other workers may repeat them. */
  #lookAtFence(): void {
    if (!this.#fence.isClosed) return this.#setFenceAlarm();
    this.#context.log.warn('fence_closed', { worker: this.#context.worker });
    this.#listeners?.dispatcher.interrupt();
  }

  /** Does what a heartbeat asks for. What fails because of the store is done after another heartbeat. */
  async #care(answer: HeartbeatAnswer): Promise<void> {
    const { log } = this.#context;
    const { accounts } = this.#own;
    try {
      if (accounts && answer.accountsVersion !== accounts.version) {
        await accounts.refresh();
        this.#sendSoon(); // it reports the new version: the worker that changed accounts waits for that
      }
      await this.#rescue.after(answer);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      log.warn('rescue_failed', { reason: error.message });
      accounts?.noteUnknown(error);
      this.#rescue.noteCommitUnknown();
    }
  }
}
