/**
 * Shows the other workers on the database that this worker is alive. The others expire a worker that sends no heartbeat
 * in time (`Rescue`). So a worker without a recent successful heartbeat stops its attempts before the others may expire
 * it (`Fence`).
 *
 * The response to a heartbeat also has the database's time, and reports work of which a notification may have been lost.
 */

import type { Store } from '../../store/store.ts';
import type { EngineDeps } from '../deps.ts';
import { Alarm } from '../loops/alarm.ts';
import type { Millis, ProjectId, WorkerId } from '../model.ts';
import type { Timer } from '../ports.ts';
import { StoreUnavailable } from '../store-errors.ts';
import { type Fence, fenceLimitMs, HeartbeatFence } from './fence.ts';
import { type HeartbeatRecovery, Rescue, type RescueContext, type RescueListeners } from './rescue.ts';
import type { HeartbeatResponse } from './store.ts';

/** The number of heartbeats in the time of one timeout. At least one of these heartbeats must succeed. */
const HEARTBEATS_PER_TIMEOUT = 3;
/** The fraction of the timeout after which a failed heartbeat is retried. */
const RETRY_FRACTION = 1 / 15;
/**
 * A first heartbeat that takes longer measures the time too imprecisely, and is repeated: at most `QUICK_TRIES` are sent.
 */
const FIRST_HEARTBEAT_MS_MAX = 500;
const FIRST_HEARTBEATS_MAX = 3;
/** The version of the accounts that a worker reports if it uses no accounts of this store. */
const NO_ACCOUNTS = 0;
/**
 * How long a stopping worker waits until the store has recorded its end. If the end is not recorded, other workers expire
 * it.
 */
const LEAVE_WAIT_MS = 1_000;

type HeartbeatContext = RescueContext &
  Pick<EngineDeps, 'randomness'> & { store: { workers: Pick<Store['workers'], 'heartbeat' | 'leave'> } };

/** The parts of the worker that are notified of a heartbeat's result. */
export interface HeartbeatListeners extends RescueListeners {
  dispatcher: RescueListeners['dispatcher'] & {
    countOf(projectId: ProjectId): number;
    interrupt(projectId?: ProjectId): void;
    noteDue(dueAtMs: Millis): void;
    wake(): void;
  };
  noteSchedule(atMs: Millis): void;
  noteDeadline(atMs: Millis): void;
  /** Notes that an ended run still has messages. */
  noteEndedRun(): void;
}

export class Heartbeat {
  readonly #context: HeartbeatContext;
  readonly #recovery: HeartbeatRecovery;
  readonly #fence: HeartbeatFence;
  readonly #rescue: Rescue;
  #listeners: HeartbeatListeners | undefined;
  #removeFromProjects = () => {};
  readonly #alarm: Alarm;
  readonly #fenceAlarm: Alarm;
  #isLeaving = false;
  #stopped = false;
  /** The heartbeat in progress. */
  #sending: Promise<void> | undefined;
  /** The work that a heartbeat asked for, while this work is in progress. */
  #recovering: Promise<void> | undefined;
  #sent = 0;
  #others: readonly WorkerId[] = [];
  /** The next heartbeat must follow immediately, to report the version of the accounts that this worker has read. */
  #isSendingDue = false;

  constructor(context: HeartbeatContext, own: HeartbeatRecovery) {
    const { clock, timeoutMs, projects } = own;
    this.#context = context;
    this.#recovery = own;
    this.#fence = new HeartbeatFence(clock, fenceLimitMs(timeoutMs), projects);
    this.#rescue = new Rescue(context, own);
    this.#alarm = new Alarm(clock, () => this.#startSending());
    this.#fenceAlarm = new Alarm(clock, () => this.#checkFence());
  }

  /** Workers that claim messages, including this one, according to the latest heartbeat. */
  get workersAlive(): number {
    return this.#others.length + 1;
  }

  /** The other workers that claim messages. */
  get others(): readonly WorkerId[] {
    return this.#others;
  }

  /**
   * Whether this worker has the lowest id. The worker with the lowest id does the work that only one of all workers does.
   */
  get isFirst(): boolean {
    return this.#others.every((other) => other > this.#context.worker);
  }

  get fence(): Fence {
    return this.#fence;
  }

  /** Sends the first heartbeat and releases the claims of expired workers (P7). Throws `StoreUnavailable`. */
  async initialize(): Promise<void> {
    const response = await this.#sendFirst();
    this.#others = response.others;
    await this.#rescue.expire();
    const { accounts } = this.#recovery;
    if (!accounts) return;
    // The accounts in memory may be older than the version that the heartbeat reported.
    for (let { accountsVersion } = response; accountsVersion !== accounts.version; ) {
      await accounts.refresh();
      ({ accountsVersion } = await this.#send());
    }
  }

  /** Starts sending heartbeats, and notifies `listeners` of their results. */
  start(listeners: HeartbeatListeners): void {
    this.#listeners = listeners;
    this.#rescue.start(listeners);
    const { dispatcher } = listeners;
    const attempts = {
      countOf: (projectId: ProjectId) => dispatcher.countOf(projectId),
      interrupt: (projectId: ProjectId) => dispatcher.interrupt(projectId),
      sendHeartbeatSoon: () => this.#sendSoon(),
    };
    this.#removeFromProjects = this.#recovery.projects?.join(attempts) ?? this.#removeFromProjects;
    this.#setFenceAlarm();
    this.#alarm.setIn(this.#pauseMs());
  }

  /** Notes that a commit may have succeeded: the next checks find the claims that this commit left. */
  noteCommitUnknown(): void {
    this.#rescue.noteCommitUnknown();
  }

  /** Notes that some backlogs have not been read yet: all backlogs are read after the next heartbeat. */
  noteUnreadBacklogs(): void {
    this.#rescue.noteLostBacklogs();
  }

  /**
   * Notes that another worker has changed accounts. This worker reads the accounts after its next heartbeat, and reports
   * the new version with the heartbeat that follows.
   */
  noteAccounts(): void {
    if (this.#listeners) this.#sendSoon();
  }

  /**
   * Notes that this worker has stopped claiming. The next heartbeat reports this, and the other workers then read the
   * backlogs that this worker has served.
   */
  noteDraining(): void {
    this.#isLeaving = true;
    if (this.#listeners && !this.#sending) this.#alarm.setIn(0);
  }

  /**
   * Call this method when no attempt is left. Resolves when the store has recorded the end of this worker, or after
   * `LEAVE_WAIT_MS`.
   */
  async stop(): Promise<void> {
    const { store, worker } = this.#context;
    const { clock } = this.#recovery;
    this.#stopped = true;
    this.#rescue.stop();
    this.#removeFromProjects();
    this.#alarm.cancel();
    this.#fenceAlarm.cancel();
    const hasLeft = Promise.all([this.#sending, this.#recovering])
      .then(() => store.workers.leave({ worker }))
      .catch((error: unknown) => {
        if (!(error instanceof StoreUnavailable)) throw error;
      });
    let timer: Timer | undefined;
    const timeout = new Promise<void>((resolve) => {
      timer = clock.startTimer(LEAVE_WAIT_MS, resolve);
    });
    await Promise.race([hasLeft, timeout]);
    timer?.cancel();
  }

  async #send(): Promise<HeartbeatResponse> {
    const { store, worker } = this.#context;
    const { clock, timeoutMs, accounts, projects } = this.#recovery;
    const startedAtMs = clock.elapsedMs;
    const requested = projects?.projectsToRequest(this.#fence) ?? [];
    const clockState = this.#sent > 0 && { clock: { nowMs: clock.nowMs(), leadMs: clock.leadMs } };
    const response = await store.workers.heartbeat({
      worker,
      timeoutMs,
      isLeaving: this.#isLeaving,
      accountsVersion: accounts?.version ?? NO_ACCOUNTS,
      projects: requested,
      ...clockState,
    });
    clock.correct(response.wallMs, startedAtMs, response.leadMs);
    this.#fence.noteHeartbeat(startedAtMs);
    const { here, wasKnown } = response;
    projects?.noteHeartbeat({ requested, here, startedAtMs, wasKnown }, this.#fence);
    accounts?.noteNewest(response.accountsVersion, startedAtMs + fenceLimitMs(timeoutMs));
    this.#sent += 1;
    return response;
  }

  /** Sends the first heartbeat. If the response is too slow to measure the time, repeats the heartbeat a few times. */
  async #sendFirst(): Promise<HeartbeatResponse> {
    const { clock } = this.#recovery;
    for (let attempt = 1; ; attempt += 1) {
      const startedAtMs = clock.elapsedMs;
      const response = await this.#send();
      if (clock.elapsedMs - startedAtMs <= FIRST_HEARTBEAT_MS_MAX || attempt === FIRST_HEARTBEATS_MAX) return response;
    }
  }

  /**
   * The pause until the next heartbeat. It is random, so that workers that were started together send heartbeats at
   * different times.
   */
  #pauseMs(): Millis {
    const [byte = 0] = this.#context.randomness.bytes(1);
    return (this.#recovery.timeoutMs / HEARTBEATS_PER_TIMEOUT) * (1 - byte / 1024);
  }

  #startSending(): void {
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
    const { timeoutMs, accounts } = this.#recovery;
    this.#isSendingDue = false;
    const wasClosed = this.#fence.isClosed;
    let pauseMs = timeoutMs * RETRY_FRACTION;
    try {
      const response = await this.#send();
      pauseMs = this.#pauseMs();
      if (!this.#stopped) this.#handleResponse(response, wasClosed);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      log.warn('beat_failed', { reason: error.message });
      accounts?.noteUnknown(error);
    }
    if (!this.#stopped) this.#alarm.setIn(pauseMs);
  }

  #handleResponse(response: HeartbeatResponse, wasClosed: boolean): void {
    const { log, worker } = this.#context;
    const { dispatcher, noteSchedule, noteDeadline, noteEndedRun } = this.#listeners as HeartbeatListeners;
    if (!response.wasKnown) {
      log.warn('declared_dead', { worker });
      dispatcher.interrupt();
      this.#rescue.noteCommitUnknown();
    }
    if (wasClosed) log.info('fence_opened', { worker });
    this.#setFenceAlarm();
    if (response.nextDueAtMs !== undefined) dispatcher.noteDue(response.nextDueAtMs);
    else dispatcher.wake();
    if (response.nextScheduleAtMs !== undefined) noteSchedule(response.nextScheduleAtMs);
    if (response.nextWaiterAtMs !== undefined) noteDeadline(response.nextWaiterAtMs);
    if (response.hasEndedRun) noteEndedRun();
    if (this.#others.some((other) => !response.others.includes(other))) this.#rescue.noteLostBacklogs();
    this.#others = response.others;
    this.#recovering ??= this.#recover(response).finally(() => {
      this.#recovering = undefined;
    });
  }

  #setFenceAlarm(): void {
    this.#fenceAlarm.setIn(this.#fence.leftMs + 1);
  }

  /** If the fence has closed, interrupts the attempts in flight, before other workers may repeat them. */
  #checkFence(): void {
    if (!this.#fence.isClosed) return this.#setFenceAlarm();
    this.#context.log.warn('fence_closed', { worker: this.#context.worker });
    this.#listeners?.dispatcher.interrupt();
  }

  /** Does the work that a heartbeat asks for. If the store fails, the work is repeated after another heartbeat. */
  async #recover(response: HeartbeatResponse): Promise<void> {
    const { log } = this.#context;
    const { accounts } = this.#recovery;
    try {
      if (accounts && response.accountsVersion !== accounts.version) {
        await accounts.refresh();
        this.#sendSoon(); // reports the new version, for which the worker that changed accounts waits
      }
      await this.#rescue.recover(response);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      log.warn('rescue_failed', { reason: error.message });
      accounts?.noteUnknown(error);
      this.#rescue.noteCommitUnknown();
    }
  }
}
